WITH changed AS (UPDATE outbox.request AS r SET status = 'failed',
error = pg_catalog.jsonb_build_object('class', 'fatal') || COALESCE(r.error, '{}') || pg_catalog.jsonb_build_object('code', 'discarded',
'at', pg_catalog.clock_timestamp(), 'message', 'an operator has given it up' ||
COALESCE('; the last try: ' || (r.error ->> 'code') || COALESCE(': ' || (r.error ->> 'message'), ''), ''), 'hint',
'It is sent only if a caller asks for it again with retry_failed.'),
body = CASE WHEN r.ambiguous > 0 THEN r.body END, token = NULL, expires_at = NULL, updated_at = pg_catalog.clock_timestamp()
FROM pg_catalog.unnest($1::text[]) AS p(id) WHERE r.request_id = p.id::uuid AND r.status IN ('failed', 'pending')
AND (r.status = 'pending' OR r.error ->> 'code' IS DISTINCT FROM 'discarded') RETURNING r.request_id, r.relay),
noted AS (INSERT INTO outbox.operation (operator, verb, cursor, detail) SELECT session_user || '/' || $2, 'request discard', c.relay,
pg_catalog.jsonb_build_object('requests', pg_catalog.jsonb_agg(c.request_id)) FROM changed AS c GROUP BY c.relay)
SELECT pg_catalog.count(*) FROM changed
