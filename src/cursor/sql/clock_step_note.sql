-- $1 the replica, $2 the cursor, $3 the start of the step or NULL, $4 its end.
INSERT INTO outbox.operation (operator, verb, cursor, detail)
SELECT session_user || '/' || $1::text, 'clock stepped back', $2::text,
    pg_catalog.jsonb_build_object('from', $3::timestamptz, 'to', $4::timestamptz)
WHERE NOT EXISTS (
    SELECT FROM outbox.operation AS o
    WHERE o.cursor = $2 AND o.verb = 'clock stepped back' AND (o.detail ->> 'to')::timestamptz = $4
        AND ($3::timestamptz IS NULL OR (o.detail ->> 'from')::timestamptz <= $3::timestamptz)
)
