-- $1 schema, $2 name, $3 the column that is set when a row was sent, or NULL.
SELECT c.oid,
       c.relkind::text,
       current_user::text,
       COALESCE((SELECT r.rolsuper FROM pg_catalog.pg_roles AS r WHERE r.rolname = current_user), false),
       pg_catalog.has_schema_privilege(n.oid, 'USAGE'),
       pg_catalog.has_table_privilege(c.oid, 'SELECT'),
       COALESCE((SELECT pg_catalog.has_column_privilege(c.oid, a.attnum, 'UPDATE')
                 FROM pg_catalog.pg_attribute AS a
                 WHERE a.attrelid = c.oid AND a.attname = $3::text AND NOT a.attisdropped), true),
       c.relkind IN ('r', 'p') AND pg_catalog.row_security_active(c.oid),
       (SELECT pg_catalog.bool_and(pg_catalog.has_table_privilege(o.oid, p.privilege))
        FROM pg_catalog.pg_class AS o
        CROSS JOIN pg_catalog.unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS p (privilege)
        WHERE o.relnamespace = 'outbox'::regnamespace AND o.relname IN ('claim', 'sent') AND o.relkind = 'r'),
       c.relkind = 'r' AND EXISTS (SELECT FROM pg_catalog.pg_inherits AS i WHERE i.inhparent = c.oid)
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = $1::text AND c.relname = $2::text AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
