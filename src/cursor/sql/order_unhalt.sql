UPDATE outbox.cursor_status SET state = 'running', halted = false, fingerprint = NULL, message_id = NULL,
    last_error = NULL, updated_at = pg_catalog.clock_timestamp()
WHERE cursor = $1 AND halted AND (message_id = $2 OR last_error ->> 'code' = ANY ($3))
