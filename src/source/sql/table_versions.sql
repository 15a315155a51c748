SELECT ARRAY(
    SELECT pg_catalog.concat_ws(' ', i.inhrelid, i.inhparent, i.xmin)
    FROM pg_catalog.pg_inherits AS i
    WHERE i.inhrelid = ANY ((SELECT $1::oid[])::oid[])
    ORDER BY 1
)
