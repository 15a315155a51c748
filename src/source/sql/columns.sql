-- The columns of the table $1 (an oid).
SELECT a.attname::text,
       pg_catalog.format_type(a.atttypid, NULL),
       a.atttypmod,
       a.attnotnull,
       pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'SELECT')
FROM pg_catalog.pg_attribute AS a
WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped
