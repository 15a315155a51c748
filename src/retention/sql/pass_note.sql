INSERT INTO outbox.operation (operator, verb, detail) VALUES (session_user || '/' || $1, 'prune', $2::text::jsonb)
