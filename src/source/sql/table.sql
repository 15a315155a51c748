-- One row for the table $1 (an oid): what it is, and what this role may do with it.
SELECT c.relkind::text,
       c.relpersistence::text,
       c.relrowsecurity,
       c.relforcerowsecurity,
       pg_catalog.has_schema_privilege(c.relnamespace, 'USAGE'),
       (SELECT r.rolsuper FROM pg_catalog.pg_roles AS r WHERE r.rolname = current_user),
       pg_catalog.has_table_privilege(c.oid, 'INSERT') OR pg_catalog.has_any_column_privilege(c.oid, 'INSERT')
         OR pg_catalog.has_table_privilege(c.oid, 'UPDATE') OR pg_catalog.has_any_column_privilege(c.oid, 'UPDATE'),
       (SELECT r.rolbypassrls FROM pg_catalog.pg_roles AS r WHERE r.rolname = current_user)
         OR pg_catalog.pg_has_role(c.relowner, 'USAGE') AND NOT c.relforcerowsecurity,
       EXISTS (SELECT FROM pg_catalog.pg_stat_subscription AS s WHERE s.relid = c.oid)
FROM pg_catalog.pg_class AS c
WHERE c.oid = $1::oid
