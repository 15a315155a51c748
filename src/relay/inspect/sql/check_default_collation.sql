SELECT d.datcollversion, pg_catalog.pg_database_collation_actual_version(d.oid)
FROM pg_catalog.pg_database AS d
WHERE d.datname = pg_catalog.current_database()
