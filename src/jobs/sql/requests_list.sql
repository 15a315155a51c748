SELECT l.* FROM (SELECT c.relay, c.key, c.state, c.due_at, c.updated_at, c.claimed_by, c.attempts, c.error::text,
NULL::text AS dedupe_key, NULL::text AS user_id, NULL::text AS template, NULL::text AS provider_id, (c.state = 'unknown')::integer AS ambiguous
FROM outbox.claim AS c UNION ALL SELECT r.relay, ARRAY[r.request_id::text],
CASE WHEN r.status = 'failed' AND r.error ->> 'code' = 'discarded' THEN 'discarded' ELSE r.status END, r.due_at, r.updated_at, r.claimed_by,
r.attempts, r.error::text, r.dedupe_key, r.user_id, r.template, r.provider_id, r.ambiguous FROM outbox.request AS r
WHERE r.status <> 'completed' AND NOT (r.status = 'failed' AND COALESCE(r.error ->> 'code' = 'discarded', false))
OR $2::text IN ('completed', 'discarded') OR $3::boolean) AS l
WHERE ($1::text IS NULL OR l.relay = $1 OR l.relay IN (SELECT k.name FROM outbox.cursor AS k WHERE k.relay = $1)) AND ($2::text IS NULL OR l.state = $2) AND (l.ambiguous > 0 OR NOT $3::boolean)
ORDER BY l.relay, l.due_at, l.key LIMIT $4
