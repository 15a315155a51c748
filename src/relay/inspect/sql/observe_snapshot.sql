SELECT a.pid, COALESCE(a.application_name, ''), EXTRACT(EPOCH FROM pg_catalog.clock_timestamp() - a.xact_start)::float8,
    pg_catalog.age(a.backend_xmin)
FROM pg_catalog.pg_stat_activity AS a
WHERE a.backend_xmin IS NOT NULL AND a.pid <> pg_catalog.pg_backend_pid()
ORDER BY pg_catalog.age(a.backend_xmin) DESC LIMIT 1
