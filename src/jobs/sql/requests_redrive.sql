WITH changed AS (UPDATE outbox.request AS r SET status = 'pending', due_at = pg_catalog.clock_timestamp(),
not_before = pg_catalog.clock_timestamp(), attempts = 0,
first_tried_at = NULL, token = NULL, expires_at = NULL, body = CASE WHEN r.ambiguous > 0 THEN r.body END,
body_hash = CASE WHEN r.ambiguous > 0 THEN r.body_hash END, updated_at = pg_catalog.clock_timestamp()
FROM pg_catalog.unnest($1::text[]) AS p(id) WHERE r.request_id = p.id::uuid AND r.status IN ('failed', 'unknown')
AND r.error ->> 'code' IS DISTINCT FROM 'discarded' AND (r.holds_key OR r.dedupe_key IS NULL) RETURNING r.request_id, r.relay),
noted AS (INSERT INTO outbox.operation (operator, verb, cursor, detail) SELECT session_user || '/' || $2, 'request redrive', c.relay,
pg_catalog.jsonb_build_object('requests', pg_catalog.jsonb_agg(c.request_id)) FROM changed AS c GROUP BY c.relay)
SELECT c.request_id::text FROM changed AS c
