-- A relation $1 that is no part of the table any more: its name, whether this role can look into it by the columns $2, and the role.
-- One without rows need not be looked into: a file of no bytes says as much. A partitioned one has its rows in its own partitions.
SELECT $1::oid::pg_catalog.regclass::text,
       pg_catalog.has_table_privilege(c.oid, 'SELECT')
           AND pg_catalog.has_schema_privilege(c.relnamespace, 'USAGE')
           AND NOT pg_catalog.row_security_active(c.oid)
           AND (SELECT pg_catalog.count(*) FROM pg_catalog.pg_attribute AS a
                WHERE a.attrelid = c.oid AND a.attname = ANY ($2::text[]) AND NOT a.attisdropped) = pg_catalog.cardinality($2::text[]),
       pg_catalog.quote_ident(current_user)
FROM pg_catalog.pg_class AS c
WHERE c.oid = $1::oid AND c.relkind = 'r' AND pg_catalog.pg_relation_size(c.oid) > 0
