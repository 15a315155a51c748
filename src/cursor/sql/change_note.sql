INSERT INTO outbox.operation (operator, verb, cursor, detail)
VALUES (
    session_user || '/' || $1::text, 'change applied', $2::text,
    pg_catalog.jsonb_build_object('number', $3::bigint, 'moved', $4::boolean)
)
