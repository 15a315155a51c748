-- The prepared transaction that has locked or changed the cursor's row; another cursor's, or another lock, it may have beside it.
SELECT p.gid
FROM outbox.cursor AS c JOIN pg_catalog.pg_prepared_xacts AS p ON p.transaction = c.xmax
WHERE c.name = $1 AND p.database = pg_catalog.current_database()
