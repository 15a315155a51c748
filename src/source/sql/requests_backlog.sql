SELECT pg_catalog.clock_timestamp(), pg_catalog.min(d.due_at), pg_catalog.count(*)
FROM (
    (
        SELECT r.due_at
        FROM outbox.request AS r
        WHERE r.relay = $1 AND r.status = 'pending' AND r.attempts = 0 AND r.not_before <= pg_catalog.now()
        ORDER BY r.not_before LIMIT $2
    )
    UNION ALL (
        SELECT r.due_at
        FROM outbox.request AS r
        WHERE r.relay = $1 AND r.status = 'pending' AND r.attempts > 0
        ORDER BY r.due_at LIMIT $2
    )
    UNION ALL (SELECT r.due_at FROM outbox.request AS r WHERE r.relay = $1 AND r.status = 'processing' LIMIT $2)
) AS d
