-- What this role lacks on the schema outbox, as in schema/grants.sql.
WITH wanted (name, privilege) AS (
    SELECT t.name, p.privilege
    FROM (VALUES ('cursor'), ('control'), ('cursor_status'), ('operation')) AS t (name)
    CROSS JOIN (VALUES ('SELECT'), ('INSERT'), ('UPDATE')) AS p (privilege)
    UNION ALL VALUES ('version', 'SELECT'), ('status', 'SELECT'))
SELECT 'USAGE on schema outbox'
FROM pg_catalog.pg_namespace AS n
WHERE n.nspname = 'outbox' AND NOT pg_catalog.has_schema_privilege(n.oid, 'USAGE')
UNION ALL
SELECT pg_catalog.string_agg(w.privilege, ', ') || ' on outbox.' || w.name
FROM wanted AS w
JOIN pg_catalog.pg_namespace AS n ON n.nspname = 'outbox'
JOIN pg_catalog.pg_class AS c ON c.relnamespace = n.oid AND c.relname = w.name
WHERE NOT pg_catalog.has_table_privilege(c.oid, w.privilege)
GROUP BY w.name
