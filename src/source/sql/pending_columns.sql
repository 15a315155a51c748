-- $1 the table's oid.
SELECT a.attname::text,
       pg_catalog.format_type(a.atttypid, a.atttypmod),
       pg_catalog.format_type(b.oid, NULL),
       a.attnotnull,
       a.atttypid >= 16384,
       -- Its text is what its output function makes, unless a cast is created.
       b.oid >= 16384 AND (b.typtype IN ('e', 'c', 'r', 'm') OR b.typcategory = 'A' AND b.typelem <> 0)
         AND NOT EXISTS (SELECT FROM pg_catalog.pg_cast AS c
                         WHERE c.castsource = b.oid AND c.casttarget = 'text'::regtype AND c.castmethod = 'f')
FROM pg_catalog.pg_attribute AS a
JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid
JOIN pg_catalog.pg_type AS b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END
WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
