-- Who has a lock, or waits for one before others, that keeps the schema's own tables from being written, or these and their partitions
-- from being read. No table is opened for it: that would wait for the same lock.
WITH RECURSIVE family AS (
    SELECT c.oid
    FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname || '.' || c.relname = ANY ($1)
    UNION
    SELECT i.inhrelid FROM family AS f JOIN pg_catalog.pg_inherits AS i ON i.inhparent = f.oid
)
SELECT n.nspname || '.' || c.relname, l.mode, l.pid, a.application_name,
    EXTRACT(EPOCH FROM pg_catalog.clock_timestamp() - a.xact_start)::float8,
    (
        SELECT p.gid
        FROM pg_catalog.pg_prepared_xacts AS p
        JOIN pg_catalog.pg_locks AS x ON x.locktype = 'transactionid' AND x.transactionid = p.transaction
        WHERE l.pid IS NULL AND x.pid IS NULL AND x.virtualtransaction = l.virtualtransaction
            AND p.database = pg_catalog.current_database()
    ), l.granted
FROM pg_catalog.pg_locks AS l
JOIN pg_catalog.pg_class AS c ON c.oid = l.relation
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_stat_activity AS a ON a.pid = l.pid
WHERE l.locktype = 'relation'
    AND l.database = (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = pg_catalog.current_database())
    AND CASE
        WHEN n.nspname = 'outbox' THEN l.mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
        ELSE l.mode = 'AccessExclusiveLock' AND c.oid IN (SELECT f.oid FROM family AS f)
    END
    AND c.relkind IN ('r', 'p', 'f', 'v')
ORDER BY l.granted DESC, a.xact_start NULLS FIRST, 1
