SELECT pg_catalog.count(*) OVER (), EXTRACT(EPOCH FROM not_before - pg_catalog.clock_timestamp())::float8,
    COALESCE(error ->> 'code', '')
FROM (
    SELECT not_before, error
    FROM outbox.claim
    WHERE relay = $1 AND state = 'waiting'
    UNION ALL
    SELECT not_before, error
    FROM outbox.request
    WHERE relay = $1 AND status = 'pending' AND attempts > 0
    UNION ALL
    SELECT try_at, error
    FROM outbox.action
    WHERE relay = $1 AND status = 'due' AND attempts > 0
) AS w
ORDER BY not_before LIMIT 1
