INSERT INTO outbox.dead_letter AS d (cursor, source, created_at, message_id, sink, target, fields, field_values, error,
    state, dead_lettered_by, requested_at, requested_by)
SELECT $1, $2, r.created_at, r.id, 'kafka', $3, '{}', '{}',
    pg_catalog.jsonb_build_object('at', pg_catalog.clock_timestamp(), 'class', 'retry', 'code', 'not_in_topic',
        'message', 'verify found the row passed and not in the topic', 'hint', 'It is published by the next turn.')
        -- By its transaction a sweep knows that the row has a letter, and does not find it late once this one is redriven.
        || CASE WHEN r.transaction IS NULL THEN '{}' ELSE pg_catalog.jsonb_build_object('late', r.transaction) END,
    'redriving', 'verify', pg_catalog.clock_timestamp(), session_user || '/' || $6
FROM ROWS FROM (
    pg_catalog.unnest($4::timestamptz[]), pg_catalog.unnest($5::text[]), pg_catalog.unnest($7::text[])
) AS r (created_at, id, transaction)
-- A parked row is sent by itself when its key is released, and not before.
WHERE NOT EXISTS (
    SELECT FROM outbox.parked AS p WHERE p.cursor = $1 AND p.created_at = r.created_at AND p.message_id = r.id
)
ON CONFLICT (cursor, created_at, message_id) DO UPDATE SET state = 'redriving', error = excluded.error,
    attempts = d.attempts + 1, requested_at = excluded.requested_at, requested_by = excluded.requested_by,
    resolved_at = NULL, resolved_by = NULL
-- One that was sent since the comparison began was ordered by another verify.
WHERE d.state = 'redriven' AND d.resolved_at < $8
RETURNING d.id
