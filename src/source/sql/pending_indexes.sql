-- $1 the table's oid. Indexes over expressions are left out: their columns are not columns.
SELECT i.indexrelid::regclass::text,
       (SELECT pg_catalog.array_agg(a.attname::text ORDER BY k.ordinality)
        FROM pg_catalog.unnest(i.indkey::int2[]) WITH ORDINALITY AS k (attnum, ordinality)
        JOIN pg_catalog.pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
        WHERE k.ordinality <= i.indnkeyatts),
       i.indisunique,
       pg_catalog.pg_get_expr(i.indpred, i.indrelid),
       -- Marks find a row by the collations of its columns.
       NOT EXISTS (SELECT FROM pg_catalog.generate_series(0, i.indnkeyatts - 1) AS k
                   JOIN pg_catalog.pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[k]
                   JOIN pg_catalog.pg_collation AS l ON l.oid = a.attcollation
                   WHERE NOT l.collisdeterministic AND i.indcollation[k] <> a.attcollation)
         AND NOT EXISTS (SELECT FROM pg_catalog.generate_series(0, i.indnkeyatts - 1) AS k
                         JOIN pg_catalog.pg_opclass AS o ON o.oid = i.indclass[k]
                         WHERE o.opcnamespace <> 'pg_catalog'::regnamespace)
FROM pg_catalog.pg_index AS i
WHERE i.indrelid = $1 AND i.indisvalid AND i.indexprs IS NULL
ORDER BY 1
