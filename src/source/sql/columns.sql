-- The columns of the table $1 (an oid), and in which relations of its descendants ($2) a column may be NULL: children
-- by inheritance, unlike partitions, may drop their parent's NOT NULL. From PostgreSQL 18 on, a NOT NULL may be NOT
-- VALID: older rows may hold NULL then.
SELECT a.attname::text,
       pg_catalog.format_type(a.atttypid, NULL),
       a.atttypmod,
       ARRAY(SELECT d.attrelid::regclass::text FROM pg_catalog.pg_attribute AS d
             WHERE d.attrelid = ANY ((SELECT $2::oid[])::oid[]) AND d.attname = a.attname AND NOT d.attisdropped
               AND (NOT d.attnotnull OR EXISTS (
                   SELECT FROM pg_catalog.pg_constraint AS n
                   WHERE n.conrelid = d.attrelid AND n.contype = 'n' AND NOT n.convalidated AND d.attnum = ANY (n.conkey)))
             ORDER BY 1),
       -- Of the whole table: LOCK TABLE asks for no less.
       pg_catalog.has_table_privilege(a.attrelid, 'SELECT'),
       -- A default names no column. With the table's oid PostgreSQL would look up the names of all its columns for each of them.
       CASE WHEN a.attgenerated = '' THEN pg_catalog.pg_get_expr(f.adbin, 0) END,
       a.atttypid,
       t.typarray,
       t.typdelim::text,
       a.attnum,
       pg_catalog.format_type(b.oid, NULL),
       CASE WHEN a.attcollation <> 0 THEN a.attcollation::pg_catalog.regcollation::text END,
       -- Its text is what its output function makes, unless a cast is created.
       b.oid >= 16384 AND (b.typtype IN ('e', 'c', 'r', 'm') OR b.typcategory = 'A' AND b.typelem <> 0)
         AND NOT EXISTS (SELECT FROM pg_catalog.pg_cast AS c
                         WHERE c.castsource = b.oid AND c.casttarget = 'text'::regtype AND c.castmethod = 'f'),
       e.oid,
       ARRAY(SELECT l.enumlabel::text FROM pg_catalog.pg_enum AS l WHERE l.enumtypid = e.oid)
FROM pg_catalog.pg_attribute AS a
JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid
JOIN pg_catalog.pg_type AS b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END
LEFT JOIN pg_catalog.pg_type AS e ON e.oid = b.oid AND b.typtype = 'e'
LEFT JOIN pg_catalog.pg_attrdef AS f ON f.adrelid = a.attrelid AND f.adnum = a.attnum
WHERE a.attrelid = (SELECT $1::oid) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
