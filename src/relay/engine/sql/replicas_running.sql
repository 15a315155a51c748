SELECT DISTINCT a.application_name
FROM pg_catalog.pg_stat_activity AS a
WHERE a.datname = pg_catalog.current_database() AND a.application_name LIKE 'outbox-relay/%'
ORDER BY 1
