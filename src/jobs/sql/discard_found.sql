SELECT r.request_id::text, r.user_id, r.template,
    CASE WHEN r.status = 'failed' AND r.error ->> 'code' = 'discarded' THEN 'discarded' WHEN r.status = 'processing'
        AND r.expires_at < pg_catalog.clock_timestamp() THEN 'unknown' ELSE r.status END,
    r.error ->> 'code', r.claimed_by, r.ambiguous
FROM outbox.request AS r
WHERE CASE WHEN $2::text IS NULL THEN r.request_id = ANY ($1::text[]::uuid[]) ELSE r.relay = $2
    AND r.status <> 'completed' AND NOT (r.status = 'failed' AND COALESCE(r.error ->> 'code' = 'discarded', false))
    AND ($3::text IS NULL OR r.status = $3) END
ORDER BY r.due_at, r.request_id
