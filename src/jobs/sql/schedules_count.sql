SELECT (
    SELECT pg_catalog.count(*)
    FROM outbox.schedule AS s
    WHERE (s.relay = $1 OR s.problem LIKE 'relay_unknown:%') AND s.problem IS NOT NULL
),
    (SELECT pg_catalog.count(*) FROM outbox.action AS a WHERE a.relay = $1 AND a.status = 'running'),
    COALESCE(
        (
            SELECT pg_catalog.max(EXTRACT(EPOCH FROM pg_catalog.statement_timestamp() - s.next_at)::float8)
            FROM (
                SELECT s.next_at
                FROM outbox.schedule AS s
                WHERE s.relay = $1 AND s.enabled AND s.next_at < pg_catalog.statement_timestamp()
                ORDER BY s.next_at LIMIT 1
            ) AS s
        ),
        0
    )
