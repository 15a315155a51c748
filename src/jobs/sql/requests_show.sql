SELECT r.request_id::text, pg_catalog.jsonb_build_object('request_id', r.request_id, 'dedupe_key', r.dedupe_key,
'holds_key', r.holds_key, 'dedupe_until', r.dedupe_until, 'user_id', r.user_id, 'template', r.template, 'parameters', r.parameters,
'relay', r.relay, 'status',
CASE WHEN r.status = 'failed' AND r.error ->> 'code' = 'discarded' THEN 'discarded' ELSE r.status END, 'due_at', r.due_at, 'not_before', r.not_before, 'attempts', r.attempts, 'ambiguous', r.ambiguous,
'claimed_by', r.claimed_by, 'claimed_at', r.claimed_at, 'expires_at', r.expires_at, 'first_tried_at', r.first_tried_at,
'body_bytes', pg_catalog.octet_length(r.body), 'body_hash', pg_catalog.encode(r.body_hash, 'hex'), 'provider_id', r.provider_id,
'reply', r.reply, 'error', r.error, 'created_at', r.created_at, 'updated_at', r.updated_at, 'completed_at', r.completed_at)::text
FROM outbox.request AS r WHERE r.request_id = $1::text::uuid OR r.dedupe_key = $2 AND r.holds_key LIMIT 1
