SELECT EXTRACT(EPOCH FROM pg_catalog.clock_timestamp() - a.xact_start)::float8, a.wait_event IS NOT DISTINCT FROM 'SyncRep'
FROM pg_catalog.pg_stat_activity AS a
WHERE a.pid = $1
