-- The valid, complete indexes of the table $1 (an oid): uniqueness, access method, and column names in order.
SELECT i.indisunique,
       m.amname::text,
       ARRAY(SELECT pg_catalog.pg_get_indexdef(i.indexrelid, k, false) FROM pg_catalog.generate_series(1, i.indnkeyatts) AS k)
FROM pg_catalog.pg_index AS i
JOIN pg_catalog.pg_class AS x ON x.oid = i.indexrelid
JOIN pg_catalog.pg_am AS m ON m.oid = x.relam
WHERE i.indrelid = $1::oid AND i.indisvalid AND i.indisready AND i.indpred IS NULL
