SELECT pg_catalog.set_config(s.name, '0', false)
FROM pg_catalog.pg_settings AS s
WHERE s.name IN ('statement_timeout', 'lock_timeout', 'transaction_timeout', 'idle_in_transaction_session_timeout')
