WITH changed AS (UPDATE outbox.request AS r SET status = CASE WHEN $3 = 'arrived' THEN 'completed' ELSE 'failed' END,
completed_at = CASE WHEN $3 = 'arrived' THEN pg_catalog.clock_timestamp() END,
first_tried_at = CASE WHEN $3 = 'arrived' THEN r.first_tried_at END,
body = CASE WHEN $3 <> 'arrived' THEN r.body END, error = CASE WHEN $3 <> 'arrived' THEN
pg_catalog.jsonb_build_object('class', 'fatal') || COALESCE(r.error, '{}') || pg_catalog.jsonb_build_object('code', $4::text,
'at', pg_catalog.clock_timestamp(), 'message', 'an operator has found that it did not arrive' ||
COALESCE('; the last try: ' || (r.error ->> 'code') || COALESCE(': ' || (r.error ->> 'message'), ''), ''),
'hint', 'Send it again: `outbox-relay request redrive`; or give it up: `outbox-relay request discard`.') END,
ambiguous = r.ambiguous + (r.status = 'processing')::integer, token = NULL, expires_at = NULL, updated_at = pg_catalog.clock_timestamp()
FROM pg_catalog.unnest($1::text[]) AS p(id) WHERE r.request_id = p.id::uuid AND (r.status = 'unknown'
OR r.status = 'processing' AND r.expires_at < pg_catalog.clock_timestamp()) RETURNING r.request_id, r.relay),
noted AS (INSERT INTO outbox.operation (operator, verb, cursor, detail) SELECT session_user || '/' || $2, 'request settle', c.relay,
pg_catalog.jsonb_build_object('outcome', $3::text, 'requests', pg_catalog.jsonb_agg(c.request_id)) FROM changed AS c GROUP BY c.relay)
SELECT pg_catalog.count(*) FROM changed
