WITH unknown AS (
    SELECT relay, key, updated_at
    FROM outbox.claim
    WHERE state = 'unknown'
    UNION ALL
    SELECT relay, ARRAY[request_id::text], updated_at
    FROM outbox.request
    WHERE status = 'unknown'
)
SELECT c.relay, pg_catalog.count(*),
    (
        SELECT pg_catalog.jsonb_agg(n.key)::text
        FROM (SELECT k.key FROM unknown AS k WHERE k.relay = c.relay ORDER BY k.updated_at DESC, k.key LIMIT 20) AS n
    )
FROM unknown AS c
GROUP BY c.relay
