WITH RECURSIVE t AS (
    (
        SELECT a.tenant, 1 AS n
        FROM outbox.action AS a
        WHERE a.relay = $1 AND a.status = 'due' AND a.tenant > $2
        ORDER BY a.tenant LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT a.tenant
        FROM outbox.action AS a
        WHERE a.relay = $1 AND a.status = 'due' AND a.tenant > t.tenant
        ORDER BY a.tenant LIMIT 1
    ),
        t.n + 1
    FROM t
    WHERE t.tenant IS NOT NULL AND t.n < $3
)
SELECT d.action_id, t.tenant, d.schedule_id
FROM t
LEFT JOIN LATERAL (
    SELECT a.action_id, a.schedule_id, a.try_at
    FROM outbox.action AS a
    WHERE a.relay = $1 AND a.status = 'due' AND a.tenant = t.tenant AND a.try_at <= pg_catalog.statement_timestamp()
    ORDER BY a.try_at, a.action_id LIMIT $4
) AS d ON true
WHERE t.tenant IS NOT NULL
ORDER BY d.try_at, d.action_id
