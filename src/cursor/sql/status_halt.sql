SELECT message_id, COALESCE(last_error ->> 'class', ''), COALESCE(last_error ->> 'code', ''),
    COALESCE(last_error ->> 'message', ''), fingerprint, updated_at
FROM outbox.cursor_status
WHERE cursor = $1 AND halted
