SELECT i.id, i.created_at
FROM outbox.cursor AS c
CROSS JOIN LATERAL pg_catalog.jsonb_to_recordset(c.token -> 'rows') AS i (id text, created_at timestamptz)
WHERE c.name = ANY ($1)
