SELECT pg_catalog.count(*) FILTER (WHERE done AND free),
    pg_catalog.count(*) FILTER (WHERE done AND NOT free AND dedupe_until IS NOT NULL),
    pg_catalog.count(*) FILTER (WHERE done AND NOT free AND dedupe_until IS NULL),
    pg_catalog.count(*) FILTER (WHERE status = 'failed' AND NOT done),
    pg_catalog.count(*) FILTER (WHERE status = 'unknown')
FROM (
    SELECT status, dedupe_until,
        status = 'completed' OR status = 'failed' AND COALESCE(error ->> 'code' = 'discarded', false) AS done,
        COALESCE(dedupe_until < pg_catalog.clock_timestamp(), dedupe_key IS NULL) AS free
    FROM outbox.request
    WHERE CASE status WHEN 'completed' THEN completed_at
        ELSE updated_at END < pg_catalog.clock_timestamp() - pg_catalog.make_interval(secs => $1::float8)
) AS old
