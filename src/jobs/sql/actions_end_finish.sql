WITH o AS (SELECT a.action_id FROM outbox.action AS a WHERE a.action_id = $1 AND a.token = $2 FOR UPDATE SKIP LOCKED)
UPDATE outbox.action AS a SET status = $3, finished_at = pg_catalog.clock_timestamp(), result = $4,
    error = CASE WHEN $5::text IS NOT NULL THEN $5::text::jsonb
    || pg_catalog.jsonb_build_object('at', pg_catalog.clock_timestamp()) END,
    attempts = a.attempts + CASE WHEN $3 = 'failed' THEN 1 ELSE 0 END, token = NULL, expires_at = NULL, progress = NULL,
    started_at = COALESCE(pg_catalog.clock_timestamp() - pg_catalog.make_interval(secs => $6::float8), a.started_at),
    updated_at = pg_catalog.clock_timestamp()
FROM o
WHERE a.action_id = o.action_id
RETURNING a.schedule_id, a.tenant
