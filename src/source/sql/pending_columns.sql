-- $1 the table's oid.
SELECT a.attname::text,
       pg_catalog.format_type(a.atttypid, a.atttypmod),
       pg_catalog.format_type(CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END, NULL),
       a.attnotnull
FROM pg_catalog.pg_attribute AS a
JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid
WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
