SELECT pg_catalog.set_config(name, '0', false)
FROM pg_catalog.pg_settings
WHERE name IN ('statement_timeout', 'transaction_timeout')
