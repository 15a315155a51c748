SELECT c.name, c.position_created_at, c.position_id, c.observed_at, c.advanced_at,
COALESCE(k.paused, false), COALESCE(k.seek_seq, 0) > c.seek_applied, COALESCE(s.halted, false), s.fingerprint,
c.created_at, COALESCE(s.state, ''), c.advanced_by, s.circuit_opened_at, s.updated_at,
EXISTS (SELECT FROM outbox.dead_letter AS d WHERE d.cursor = c.name AND d.state = 'redriving')
    OR EXISTS (SELECT FROM outbox.parked_key AS p WHERE p.cursor = c.name AND p.released),
c.token IS NOT NULL, c.rule,
EXISTS (SELECT FROM outbox.dead_letter AS d WHERE d.cursor = c.name AND d.state = 'redriving' AND d.requested_at IS NOT NULL)
    OR EXISTS (SELECT FROM outbox.parked_key AS p WHERE p.cursor = c.name AND p.released),
c.position_order, c.position_columns,
CASE WHEN c.swept_at IS NOT DISTINCT FROM c.advanced_at THEN c.snapshot::text END, c.swept_column, s.last_error ->> 'code'
FROM outbox.cursor AS c
LEFT JOIN outbox.control AS k ON k.cursor = c.name
LEFT JOIN outbox.cursor_status AS s ON s.cursor = c.name
WHERE c.name = ANY ((SELECT $1::text[])::text[])
