-- The relations $1 that are no part of the table $2 any more and still exist: oid and name; what was taken from the table, the topmost of
-- all that are gone above it; what it is being detached from, where that is not finished; what keeps this role from reading it, and what
-- lets it; whether the table is partitioned. What is partitioned itself has its rows in its partitions.
WITH RECURSIVE up (leaf, oid) AS (
    SELECT g.oid, g.oid FROM pg_catalog.unnest($1::oid[]) AS g (oid)
    UNION
    SELECT u.leaf, i.inhparent FROM pg_catalog.pg_inherits AS i JOIN up AS u ON i.inhrelid = u.oid WHERE i.inhparent = ANY ($1::oid[])
)
SELECT c.oid,
       c.oid::pg_catalog.regclass::text,
       COALESCE((SELECT u.oid::pg_catalog.regclass::text FROM up AS u
                 WHERE u.leaf = c.oid AND NOT EXISTS (
                     SELECT FROM pg_catalog.pg_inherits AS i WHERE i.inhrelid = u.oid AND i.inhparent = ANY ($1::oid[]))
                 LIMIT 1),
                c.oid::pg_catalog.regclass::text),
       (SELECT i.inhparent::pg_catalog.regclass::text FROM up AS u JOIN pg_catalog.pg_inherits AS i ON i.inhrelid = u.oid
        WHERE u.leaf = c.oid AND i.inhdetachpending LIMIT 1),
       f.reason,
       CASE f.reason
           WHEN 'row security' THEN pg_catalog.format('Look whether it holds rows that were not delivered before you drop it. ALTER ROLE %I BYPASSRLS; '
               'lets the relay look.', current_user)
           WHEN 'no right to its schema' THEN pg_catalog.format('Look whether it holds rows that were not delivered before you drop it. GRANT USAGE ON '
               'SCHEMA %I TO %I; GRANT SELECT ON %s TO %I; lets the relay look.', n.nspname, current_user, c.oid::pg_catalog.regclass, current_user)
           ELSE pg_catalog.format('Look whether it holds rows that were not delivered before you drop it. GRANT SELECT ON %s TO %I; lets the relay '
               'look.', c.oid::pg_catalog.regclass, current_user)
       END,
       EXISTS (SELECT FROM pg_catalog.pg_class AS r WHERE r.oid = $2::oid AND r.relkind = 'p')
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
CROSS JOIN LATERAL (SELECT CASE
    WHEN NOT pg_catalog.has_schema_privilege(n.oid, 'USAGE') THEN 'no right to its schema'
    WHEN NOT pg_catalog.has_table_privilege(c.oid, 'SELECT') THEN 'no right to read it'
    WHEN pg_catalog.row_security_active(c.oid) THEN 'row security'
END AS reason) AS f
WHERE c.oid = ANY ($1::oid[]) AND c.relkind = 'r'
ORDER BY c.oid
