SELECT COALESCE(last_error ->> 'message', '')
FROM outbox.cursor_status
WHERE cursor = $1 AND halted AND (fingerprint = $2 OR updated_at > $3)
