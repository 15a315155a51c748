SELECT pg_catalog.count(*) FILTER (WHERE a.finished_at IS NOT NULL),
    pg_catalog.count(*) FILTER (WHERE a.finished_at IS NULL)
FROM outbox.action AS a
WHERE COALESCE(a.finished_at, a.due_at) < pg_catalog.clock_timestamp() - pg_catalog.make_interval(secs => $1::float8)
