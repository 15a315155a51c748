-- Who may be writing tables now, and which: every granted row-exclusive lock on them, their ancestors and their descendants
-- ($1).
-- The functions behind the views are called directly: half the planning, and no join that could hide a lock.
SELECT l.virtualtransaction, l.pid, a.application_name, a.xact_start, l.relation
FROM pg_catalog.pg_lock_status() AS l
LEFT JOIN LATERAL pg_catalog.pg_stat_get_activity(l.pid) AS a ON l.pid IS NOT NULL
WHERE l.locktype = 'relation'
  AND l.mode = 'RowExclusiveLock'
  AND l.granted
  AND l.relation = ANY ($1::oid[])
  AND l.database = (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = pg_catalog.current_database())
