-- What these processes ($1) run now. A statement of its own, between two that read locks.
SELECT a.pid, a.application_name, a.xact_start
FROM pg_catalog.unnest($1::integer[]) AS process (pid)
CROSS JOIN LATERAL pg_catalog.pg_stat_get_activity(process.pid) AS a
