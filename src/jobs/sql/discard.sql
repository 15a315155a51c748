WITH changed AS (UPDATE outbox.request AS r
SET status = CASE WHEN r.status = 'pending' AND r.ambiguous > 0 THEN 'unknown' ELSE 'failed' END,
error = pg_catalog.jsonb_build_object('class', CASE WHEN r.status = 'pending' AND r.ambiguous > 0 THEN 'retry' ELSE 'fatal' END) ||
COALESCE(r.error, '{}') || pg_catalog.jsonb_build_object('code',
CASE WHEN r.status = 'pending' AND r.ambiguous > 0 THEN $3::text ELSE 'discarded' END,
'at', pg_catalog.clock_timestamp(), 'message', 'an operator has given it up' ||
CASE WHEN r.status = 'pending' AND r.ambiguous > 0 THEN ', and an earlier try may have arrived' ELSE '' END ||
COALESCE('; the last try: ' || (r.error ->> 'code') || COALESCE(': ' || (r.error ->> 'message'), ''), ''), 'hint',
CASE WHEN r.status = 'pending' AND r.ambiguous > 0
THEN 'Ask the receiver, and record what it says: `outbox-relay request settle`. One that is lost can be discarded.'
ELSE 'It is sent only if a caller asks for it again with retry_failed.' END),
body = CASE WHEN r.ambiguous > 0 THEN r.body END, token = NULL, expires_at = NULL, updated_at = pg_catalog.clock_timestamp()
FROM pg_catalog.unnest($1::text[]) AS p(id) WHERE r.request_id = p.id::uuid AND r.status IN ('failed', 'pending')
AND (r.status = 'pending' OR r.error ->> 'code' IS DISTINCT FROM 'discarded') RETURNING r.request_id, r.relay, r.status),
noted AS (INSERT INTO outbox.operation (operator, verb, cursor, detail) SELECT session_user || '/' || $2, 'request discard', c.relay,
pg_catalog.jsonb_build_object('requests', COALESCE(pg_catalog.jsonb_agg(c.request_id) FILTER (WHERE c.status = 'failed'), '[]'),
'unknown', COALESCE(pg_catalog.jsonb_agg(c.request_id) FILTER (WHERE c.status = 'unknown'), '[]')) FROM changed AS c GROUP BY c.relay)
SELECT pg_catalog.count(*) FILTER (WHERE c.status = 'failed'), pg_catalog.count(*) FILTER (WHERE c.status = 'unknown') FROM changed AS c
