-- Every open transaction that could still insert with the time at which it began. A prepared transaction has no
-- process and no virtualxid lock, but keeps its transactionid lock; a process that has no statistics row holds back,
-- too. Left out: this session, other databases, and the relay's own role when $1 says that it cannot write the table.
SELECT l.virtualtransaction, l.pid, a.application_name, a.xact_start
FROM pg_catalog.pg_lock_status() AS l
LEFT JOIN LATERAL pg_catalog.pg_stat_get_activity(l.pid) AS a ON l.pid IS NOT NULL
WHERE l.locktype IN ('virtualxid', 'transactionid')
  AND l.mode = 'ExclusiveLock'
  AND l.granted
  AND l.pid IS DISTINCT FROM pg_catalog.pg_backend_pid()
  AND (a.datid IS NULL
       OR a.datid = (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = pg_catalog.current_database()))
  AND NOT ($1::boolean AND a.usesysid IS NOT NULL
           AND a.usesysid = (SELECT r.oid FROM pg_catalog.pg_roles AS r WHERE r.rolname = session_user))
