-- The indexes of the relations $1 whose first column is an expression: whose, their names, whether they are complete, whether
-- rows come out of them in the order of their first three columns, the expression as the server prints it, and the names of
-- the second and third column.
SELECT i.indrelid::regclass::text,
       i.indexrelid::regclass::text,
       x.relname::text,
       i.indisvalid AND i.indisready AND i.indislive,
       m.amname = 'btree' AND i.indpred IS NULL
         AND (i.indoption[0], i.indoption[1], i.indoption[2]) = (0, 0, 0)
         AND NOT EXISTS (SELECT FROM pg_catalog.pg_opclass AS o
                         WHERE o.oid IN (i.indclass[1], i.indclass[2]) AND o.opcname LIKE '%\_pattern\_ops')
         AND NOT EXISTS (SELECT FROM pg_catalog.pg_attribute AS a
                         WHERE a.attrelid = i.indrelid
                           AND (a.attnum = i.indkey[1] AND a.attcollation <> i.indcollation[1]
                                OR a.attnum = i.indkey[2] AND a.attcollation <> i.indcollation[2])),
       pg_catalog.pg_get_indexdef(i.indexrelid, 1, false),
       ARRAY(SELECT COALESCE(a.attname::text, '')
             FROM pg_catalog.generate_series(1, 2) AS k
             LEFT JOIN pg_catalog.pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[k]
             ORDER BY k)
FROM pg_catalog.pg_index AS i
JOIN pg_catalog.pg_class AS x ON x.oid = i.indexrelid
JOIN pg_catalog.pg_am AS m ON m.oid = x.relam
WHERE i.indrelid = ANY ($1::oid[]) AND i.indnkeyatts >= 3 AND i.indkey[0] = 0
ORDER BY x.relname
