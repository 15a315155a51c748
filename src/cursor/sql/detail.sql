SELECT c.name IS NOT NULL, c.identity::text, c.snapshot::text, c.relations, c.partitions,
c.observed_at, c.created_at, c.updated_at, c.seek_applied, k.seek_seq, k.paused_at, k.paused_by, s.message_id,
s.updated_at, (c.token - 'xid')::text,
CASE WHEN (k.adopt ->> 'number')::bigint = k.seek_seq THEN 'adopt ' || COALESCE((k.adopt -> 'identity' ->> 'table') || ' to '
|| (k.adopt -> 'identity' ->> 'sink') || ' ' || (k.adopt -> 'identity' ->> 'target'), '')
ELSE 'move to ' || COALESCE(pg_catalog.to_char(pg_catalog.timezone('UTC', (k.seek_to ->> 'created_at')::timestamptz),
'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), k.seek_to ->> 'created_at', 'before every row') END
FROM pg_catalog.unnest($1::text[]) WITH ORDINALITY AS n (name, number)
LEFT JOIN outbox.cursor AS c ON c.name = n.name
LEFT JOIN outbox.control AS k ON k.cursor = n.name
LEFT JOIN outbox.cursor_status AS s ON s.cursor = n.name
ORDER BY n.number
