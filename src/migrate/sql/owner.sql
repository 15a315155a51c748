-- This role, the database, its owner, whether the schema is there; and of the schema and what is in it the first that belongs to a role
-- whose rights this one does not have: what it is, its owner, whether that is a superuser, and whether this role is a member of it without
-- inheriting its rights.
SELECT current_user::text, d.datname::text, pg_catalog.pg_get_userbyid(d.datdba)::text, n.oid IS NOT NULL,
o.what, o.rolname::text, o.rolsuper, o.is_member,
pg_catalog.current_setting('server_version_num')::integer >= 160000
FROM pg_catalog.pg_database AS d
LEFT JOIN pg_catalog.pg_namespace AS n ON n.nspname = 'outbox'
LEFT JOIN LATERAL (SELECT x.what, r.rolname, r.rolsuper, pg_catalog.pg_has_role(x.owner, 'MEMBER') AS is_member FROM (
SELECT 1 AS nr, 'schema outbox' AS what, n.nspowner AS owner
UNION ALL SELECT 2, 'table outbox.' || c.relname, c.relowner FROM pg_catalog.pg_class AS c
WHERE c.relnamespace = n.oid AND c.relkind IN ('r', 'p')
UNION ALL SELECT 3, 'view outbox.' || c.relname, c.relowner FROM pg_catalog.pg_class AS c
WHERE c.relnamespace = n.oid AND c.relkind = 'v'
UNION ALL SELECT 4, 'function outbox.' || f.proname, f.proowner FROM pg_catalog.pg_proc AS f WHERE f.pronamespace = n.oid) AS x
JOIN pg_catalog.pg_roles AS r ON r.oid = x.owner
WHERE NOT pg_catalog.pg_has_role(x.owner, 'USAGE') ORDER BY x.nr, x.what LIMIT 1) AS o ON true
WHERE d.datname = pg_catalog.current_database()
