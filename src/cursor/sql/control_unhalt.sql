UPDATE outbox.cursor_status SET state = 'running', halted = false, fingerprint = NULL, message_id = NULL,
    last_error = NULL, circuit_opened_at = NULL, updated_at = pg_catalog.clock_timestamp()
WHERE cursor = $1 AND halted
