-- The valid, complete indexes of the relations $1: whose, uniqueness, whether rows come out of them in the order of their
-- first two columns, the key columns' names in order ('' for an expression), its name, and whether it takes for equal what
-- its columns take for equal: rows are compared by the collations of the columns.
SELECT i.indrelid::regclass::text,
       i.indisunique,
       m.amname = 'btree' AND i.indnkeyatts >= 2
         -- Both ascending, or both descending and read backwards; ORDER BY puts NULLs last even where there are none.
         AND (i.indoption[0], i.indoption[1]) IN ((0, 0), (3, 3))
         AND NOT EXISTS (SELECT FROM pg_catalog.pg_opclass AS o
                         WHERE o.oid IN (i.indclass[0], i.indclass[1]) AND o.opcname LIKE '%\_pattern\_ops')
         AND NOT EXISTS (SELECT FROM pg_catalog.pg_attribute AS a
                         WHERE a.attrelid = i.indrelid
                           AND (a.attnum = i.indkey[0] AND a.attcollation <> i.indcollation[0]
                                OR a.attnum = i.indkey[1] AND a.attcollation <> i.indcollation[1])),
       ARRAY(SELECT COALESCE(a.attname::text, '')
             FROM pg_catalog.generate_series(0, i.indnkeyatts - 1) AS k
             LEFT JOIN pg_catalog.pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[k]
             ORDER BY k),
       i.indexrelid::regclass::text,
       NOT EXISTS (SELECT FROM pg_catalog.generate_series(0, i.indnkeyatts - 1) AS k
                   JOIN pg_catalog.pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[k]
                   JOIN pg_catalog.pg_collation AS l ON l.oid = a.attcollation
                   WHERE NOT l.collisdeterministic AND i.indcollation[k] <> a.attcollation)
         -- Operator classes of extensions may have another equality.
         AND NOT EXISTS (SELECT FROM pg_catalog.generate_series(0, i.indnkeyatts - 1) AS k
                         JOIN pg_catalog.pg_opclass AS o ON o.oid = i.indclass[k]
                         WHERE o.opcnamespace <> 'pg_catalog'::regnamespace)
FROM pg_catalog.pg_index AS i
JOIN pg_catalog.pg_class AS x ON x.oid = i.indexrelid
JOIN pg_catalog.pg_am AS m ON m.oid = x.relam
WHERE i.indrelid = ANY ((SELECT $1::oid[])::oid[]) AND i.indisvalid AND i.indisready AND i.indpred IS NULL
