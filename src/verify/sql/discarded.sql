-- Retention removes the letters that were given up, and keeps the notes of that. The newest note of a row comes last.
SELECT r.id, r.created_at, o.id
FROM outbox.operation AS o
CROSS JOIN LATERAL pg_catalog.jsonb_to_recordset(o.detail -> 'rows') AS r (id text, created_at timestamptz)
WHERE o.id = ANY ($1) AND r.id = ANY ($2)
ORDER BY o.id
