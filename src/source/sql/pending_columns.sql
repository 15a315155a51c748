-- $1 the table's oid, $2 the columns of which that is asked. A column cannot be NULL if it cannot in any relation of its family: tables that inherit may drop the NOT NULL of
-- their parent, and from PostgreSQL 18 on a NOT NULL may be NOT VALID: older rows may hold NULL then.
WITH RECURSIVE family AS (
    SELECT $1::oid AS member
    UNION
    SELECT i.inhrelid
    FROM pg_catalog.pg_inherits AS i
    JOIN family AS f ON f.member = i.inhparent
)
SELECT a.attname::text,
       pg_catalog.format_type(a.atttypid, a.atttypmod),
       pg_catalog.format_type(b.oid, NULL),
       CASE WHEN a.attname <> ALL ($2::text[]) THEN a.attnotnull ELSE NOT EXISTS (
                   SELECT FROM family AS f
                   JOIN pg_catalog.pg_attribute AS d ON d.attrelid = f.member AND d.attname = a.attname AND NOT d.attisdropped
                   WHERE NOT d.attnotnull OR EXISTS (
                       SELECT FROM pg_catalog.pg_constraint AS n
                       WHERE n.conrelid = d.attrelid AND n.contype = 'n' AND NOT n.convalidated AND d.attnum = ANY (n.conkey)))
       END,
       a.atttypid >= 16384,
       -- Its text is what its output function makes, unless a cast is created.
       b.oid >= 16384 AND (b.typtype IN ('e', 'c', 'r', 'm') OR b.typcategory = 'A' AND b.typelem <> 0)
         AND NOT EXISTS (SELECT FROM pg_catalog.pg_cast AS c
                         WHERE c.castsource = b.oid AND c.casttarget = 'text'::regtype AND c.castmethod = 'f'),
       e.oid,
       ARRAY(SELECT l.enumlabel::text FROM pg_catalog.pg_enum AS l WHERE l.enumtypid = e.oid ORDER BY l.oid),
       -- A value that is renamed has another xmin.
       ARRAY(SELECT pg_catalog.format('%s.%s', l.oid, l.xmin) FROM pg_catalog.pg_enum AS l WHERE l.enumtypid = e.oid ORDER BY l.oid)
FROM pg_catalog.pg_attribute AS a
JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid
JOIN pg_catalog.pg_type AS b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END
LEFT JOIN pg_catalog.pg_type AS e ON e.oid = b.oid AND b.typtype = 'e'
WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
