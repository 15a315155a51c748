SELECT pg_catalog.set_config(name, CASE name WHEN 'synchronous_commit' THEN 'on' ELSE '0' END, false)
FROM pg_catalog.pg_settings
WHERE name IN ('statement_timeout', 'transaction_timeout', 'synchronous_commit')
