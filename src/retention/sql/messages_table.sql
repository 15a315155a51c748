SELECT c.relkind = 'p', pg_catalog.pg_has_role(c.relowner, 'USAGE')
FROM pg_catalog.pg_class AS c
WHERE c.oid = 'outbox.message'::pg_catalog.regclass
