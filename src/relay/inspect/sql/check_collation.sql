-- The collation of the column $2 of the table $1 (an oid): whether it is the database's default, its name, the version by which its order was
-- made, and the version that this server has. The database's own are asked for apart: PostgreSQL 14 does not record them.
SELECT c.collprovider = 'd',
       c.oid::regcollation::text,
       c.collversion,
       pg_catalog.pg_collation_actual_version(c.oid),
       pg_catalog.current_database()::text,
       pg_catalog.current_setting('server_version_num')::integer >= 150000
FROM pg_catalog.pg_attribute AS a
JOIN pg_catalog.pg_collation AS c ON c.oid = a.attcollation
WHERE a.attrelid = $1::oid AND a.attname = $2::text AND NOT a.attisdropped
