WITH open AS (SELECT s.circuit_opened_at IS NOT NULL AS circuit FROM outbox.cursor_status AS s WHERE s.cursor = $1 FOR UPDATE)
UPDATE outbox.cursor_status AS s SET state = 'running', halted = false, fingerprint = NULL, message_id = NULL, last_error = NULL,
circuit_opened_at = NULL, updated_at = pg_catalog.clock_timestamp() FROM open
WHERE s.cursor = $1 AND (s.state <> 'running' OR s.halted OR s.last_error IS NOT NULL OR s.circuit_opened_at IS NOT NULL)
AND (NOT s.halted OR s.fingerprint LIKE 'check:%' OR s.fingerprint = $2
OR $2::text IS NULL AND s.last_error ->> 'code' <> ALL ($3::text[])
AND (s.last_error ->> 'at')::timestamptz < pg_catalog.clock_timestamp() - interval '5 minutes') RETURNING open.circuit
