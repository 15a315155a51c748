SELECT p.gid
FROM pg_catalog.pg_prepared_xacts AS p
JOIN pg_catalog.pg_locks AS l ON l.locktype = 'transactionid' AND l.transactionid = p.transaction
WHERE l.virtualtransaction = $1 AND l.pid IS NULL AND p.database = pg_catalog.current_database()
