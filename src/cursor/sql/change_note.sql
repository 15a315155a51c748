INSERT INTO outbox.operation (operator, verb, cursor, detail)
VALUES (
    session_user || '/' || $1::text, 'change applied', $2::text,
    pg_catalog.jsonb_build_object(
        'number', $3::bigint, 'moved', $4::boolean,
        'position', CASE
            WHEN $5::timestamptz IS NOT NULL THEN pg_catalog.jsonb_build_object('created_at', $5::timestamptz, 'id', $6::text)
        END
    )
)
