INSERT INTO outbox.operation (operator, verb, cursor, detail)
VALUES (
    session_user || '/' || $1::text, 'position moved back', $2::text,
    pg_catalog.jsonb_build_object('rule', $3::text, 'from', $4::text, 'to', $5::timestamptz)
)
