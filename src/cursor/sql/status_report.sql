INSERT INTO outbox.cursor_status AS s
(cursor, state, halted, fingerprint, message_id, last_error, circuit_opened_at, updated_at)
VALUES ($1, $2, $3, $4, $5, pg_catalog.jsonb_build_object('at', pg_catalog.clock_timestamp(), 'class', $6::text,
'code', $7::text, 'message', $8::text, 'hint', $9::text, 'since', pg_catalog.clock_timestamp()),
CASE WHEN $10::boolean THEN pg_catalog.clock_timestamp() END, pg_catalog.clock_timestamp())
ON CONFLICT (cursor) DO UPDATE SET state = excluded.state, halted = excluded.halted,
fingerprint = CASE WHEN NOT excluded.halted OR NOT s.halted OR s.fingerprint LIKE 'check:%' THEN excluded.fingerprint
WHEN excluded.fingerprint = ANY (pg_catalog.string_to_array(s.fingerprint, ' ')) THEN s.fingerprint
ELSE pg_catalog.concat_ws(' ', s.fingerprint, excluded.fingerprint) END,
message_id = CASE WHEN s.halted AND s.last_error ->> 'code' = ANY ($11::text[]) AND s.fingerprint NOT LIKE 'check:%'
AND excluded.last_error ->> 'code' <> ALL ($11) THEN s.message_id ELSE excluded.message_id END,
last_error = CASE WHEN s.halted AND s.last_error ->> 'code' = ANY ($11) AND s.fingerprint NOT LIKE 'check:%'
AND excluded.last_error ->> 'code' <> ALL ($11) THEN s.last_error
WHEN s.halted AND s.last_error - '{at,since}'::text[] = excluded.last_error - '{at,since}'::text[] THEN s.last_error
ELSE excluded.last_error || CASE WHEN s.last_error ? 'since' THEN pg_catalog.jsonb_build_object('since', s.last_error -> 'since')
ELSE '{}' END END,
circuit_opened_at = CASE WHEN $10::boolean IS NULL THEN s.circuit_opened_at
WHEN $10 THEN COALESCE(s.circuit_opened_at, excluded.circuit_opened_at) END, updated_at = excluded.updated_at
WHERE CASE WHEN excluded.halted THEN NOT s.halted OR s.fingerprint LIKE 'check:%' OR excluded.fingerprint NOT LIKE 'check:%'
ELSE NOT s.halted AND ($10 IS NOT NULL OR s.circuit_opened_at IS NULL) END
