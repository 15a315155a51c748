-- One row for the table $1 (an oid): what it is, what its family $2 is made of, and what this role may do with it.
SELECT c.relkind::text,
       c.relpersistence::text,
       c.relrowsecurity AND NOT me.rolsuper AND NOT me.rolbypassrls
         AND NOT (pg_catalog.pg_has_role(c.relowner, 'USAGE') AND NOT c.relforcerowsecurity),
       pg_catalog.has_schema_privilege(c.relnamespace, 'USAGE'),
       me.rolname::text,
       me.rolsuper,
       -- By any role that this one is a member of, in any relation that rows of the table can come in through.
       EXISTS (SELECT FROM pg_catalog.pg_roles AS r, pg_catalog.pg_class AS f
               WHERE pg_catalog.pg_has_role(r.oid, 'MEMBER') AND f.oid = ANY ((SELECT $2::oid[])::oid[])
                 AND (pg_catalog.has_any_column_privilege(r.oid, f.oid, 'INSERT')
                      OR pg_catalog.has_any_column_privilege(r.oid, f.oid, 'UPDATE'))),
       ARRAY(SELECT s.srrelid::regclass::text FROM pg_catalog.pg_subscription_rel AS s
             WHERE s.srrelid = ANY ((SELECT $2::oid[])::oid[]) ORDER BY 1),
       ARRAY(SELECT f.oid::regclass::text FROM pg_catalog.pg_class AS f
             WHERE f.oid = ANY ((SELECT $2::oid[])::oid[]) AND f.oid <> c.oid AND f.relkind = 'f' ORDER BY 1),
       ARRAY(SELECT f.oid::regclass::text FROM pg_catalog.pg_class AS f
             WHERE f.oid = ANY ((SELECT $2::oid[])::oid[]) AND f.oid <> c.oid AND f.relpersistence = 't' ORDER BY 1),
       me.rolsuper OR pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE')
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_roles AS me ON me.rolname = current_user
WHERE c.oid = $1::oid
