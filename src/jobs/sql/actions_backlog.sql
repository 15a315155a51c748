SELECT pg_catalog.clock_timestamp(), pg_catalog.min(d.due_at), pg_catalog.min(d.due_at) FILTER (WHERE d.attempts = 0),
    pg_catalog.count(*)
FROM (
    SELECT a.due_at, a.attempts
    FROM outbox.action AS a
    WHERE a.relay = $1 AND a.status = 'due' AND a.due_at <= pg_catalog.statement_timestamp()
    ORDER BY a.try_at LIMIT $2
) AS d
