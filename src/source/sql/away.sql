-- A relation $1 that is no part of the table $3 any more, where it still exists: its name; what was taken from the table, the topmost of
-- all that are gone ($2) above it; whether a detachment is not finished; what keeps this
-- role from reading it, and what lets it; whether the table is partitioned. What is partitioned itself has its rows in its partitions.
WITH RECURSIVE up AS (
    SELECT $1::oid AS oid
    UNION
    SELECT i.inhparent FROM pg_catalog.pg_inherits AS i JOIN up ON i.inhrelid = up.oid WHERE i.inhparent = ANY ($2::oid[])
)
SELECT c.oid::pg_catalog.regclass::text,
       COALESCE((SELECT u.oid::pg_catalog.regclass::text FROM up AS u
                 WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_inherits AS i JOIN up AS p ON p.oid = i.inhparent WHERE i.inhrelid = u.oid)
                 LIMIT 1),
                c.oid::pg_catalog.regclass::text),
       EXISTS (SELECT FROM up AS u JOIN pg_catalog.pg_inherits AS i ON i.inhrelid = u.oid WHERE i.inhdetachpending),
       f.reason,
       CASE f.reason
           WHEN 'row security' THEN pg_catalog.format('Look whether it holds rows that were not delivered before you drop it. ALTER ROLE %I BYPASSRLS; '
               'lets the relay look.', current_user)
           WHEN 'no right to its schema' THEN pg_catalog.format('Look whether it holds rows that were not delivered before you drop it. GRANT USAGE ON '
               'SCHEMA %I TO %I; GRANT SELECT ON %s TO %I; lets the relay look.', n.nspname, current_user, c.oid::pg_catalog.regclass, current_user)
           ELSE pg_catalog.format('Look whether it holds rows that were not delivered before you drop it. GRANT SELECT ON %s TO %I; lets the relay '
               'look.', c.oid::pg_catalog.regclass, current_user)
       END,
       EXISTS (SELECT FROM pg_catalog.pg_class AS r WHERE r.oid = $3::oid AND r.relkind = 'p')
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
CROSS JOIN LATERAL (SELECT CASE
    WHEN NOT pg_catalog.has_schema_privilege(n.oid, 'USAGE') THEN 'no right to its schema'
    WHEN NOT pg_catalog.has_table_privilege(c.oid, 'SELECT') THEN 'no right to read it'
    WHEN pg_catalog.row_security_active(c.oid) THEN 'row security'
END AS reason) AS f
WHERE c.oid = $1::oid AND c.relkind = 'r'
