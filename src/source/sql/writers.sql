-- Who may be writing tables now, and which: every granted row-exclusive lock on them, their ancestors and their descendants
-- ($1). The clock is read before the locks: a left join without a condition can only be made from left to right, and its
-- left side is made first. Without a writer there is the clock alone.
-- The function behind the view is called directly: half the planning.
SELECT clock.at, writer.*
FROM (SELECT pg_catalog.clock_timestamp() AS at OFFSET 0) AS clock
LEFT JOIN LATERAL (
  SELECT l.virtualtransaction, l.pid, l.relation
  FROM pg_catalog.pg_lock_status() AS l
  WHERE l.locktype = 'relation'
    AND l.mode = 'RowExclusiveLock'
    AND l.granted
    AND l.relation = ANY ($1::oid[])
    AND l.database = (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = pg_catalog.current_database())
) AS writer ON true
