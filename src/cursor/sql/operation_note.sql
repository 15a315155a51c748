INSERT INTO outbox.operation (operator, verb, cursor, detail)
VALUES (session_user || '/' || $1, $2, $3, $4::text::jsonb)
