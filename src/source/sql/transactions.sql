-- Open transactions of this database, this session's left out, and prepared ones. A statement of its own, after sessions
-- were read. A prepared transaction has no process and no virtualxid lock, but keeps its transactionid lock; one that is
-- not in the list of prepared transactions was prepared since that was read, and counts. A process without a row of
-- activity, or without a database in it, is being opened. Whether login triggers are there says what may become of that:
-- they are always of this database.
SELECT l.virtualtransaction, l.pid, a.backend_start,
       EXISTS (SELECT FROM pg_catalog.pg_event_trigger AS e WHERE e.evtevent = 'login') AS login_trigger
FROM pg_catalog.pg_lock_status() AS l
LEFT JOIN LATERAL pg_catalog.pg_stat_get_activity(l.pid) AS a ON l.pid IS NOT NULL AND a.datid IS NOT NULL
LEFT JOIN pg_catalog.pg_prepared_xact() AS p ON l.pid IS NULL AND p.transaction = l.transactionid
CROSS JOIN (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = pg_catalog.current_database()) AS here
WHERE l.locktype = CASE WHEN l.pid IS NULL THEN 'transactionid' ELSE 'virtualxid' END
  AND l.mode = 'ExclusiveLock'
  AND l.granted
  AND l.pid IS DISTINCT FROM pg_catalog.pg_backend_pid()
  AND COALESCE(a.datid, p.dbid, here.oid) = here.oid
