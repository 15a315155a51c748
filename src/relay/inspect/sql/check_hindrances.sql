SELECT 'row security' AS what, c.relname::text AS name
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = 'outbox' AND c.relkind IN ('r', 'p') AND pg_catalog.row_security_active(c.oid)
UNION ALL
SELECT 'trigger ' || pg_catalog.quote_ident(t.tgname), c.relname::text
FROM pg_catalog.pg_trigger AS t
JOIN pg_catalog.pg_class AS c ON c.oid = t.tgrelid
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_proc AS p ON p.oid = t.tgfoid
WHERE n.nspname = 'outbox' AND NOT t.tgisinternal AND t.tgparentid = 0 AND t.tgenabled IN ('O', 'A')
    AND p.pronamespace <> n.oid
UNION ALL
SELECT 'rule ' || pg_catalog.quote_ident(r.rulename), c.relname::text
FROM pg_catalog.pg_rewrite AS r
JOIN pg_catalog.pg_class AS c ON c.oid = r.ev_class
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = 'outbox' AND c.relkind IN ('r', 'p') AND r.ev_enabled IN ('O', 'A')
UNION ALL
SELECT 'function', f.name
FROM pg_catalog.unnest($1::text[]) AS f(name)
WHERE NOT pg_catalog.has_function_privilege(f.name, 'EXECUTE')
ORDER BY 1, 2
