SELECT c.name, COALESCE(c.identity, '{}')::text, c.position_created_at, c.position_id, c.observed_at, c.relations,
    c.partitions, COALESCE(k.paused, false), COALESCE(k.seek_seq, 0) > c.seek_applied OR c.token IS NOT NULL
        OR EXISTS (SELECT FROM outbox.dead_letter AS d WHERE d.cursor = c.name AND d.state = 'redriving')
        OR EXISTS (
            SELECT FROM outbox.ahead AS a
            WHERE a.cursor = c.name AND a.seek = c.seek_applied AND a.since = c.created_at
                AND (c.position_created_at IS NULL OR a.created_at > c.position_created_at)
        ),
    (
        SELECT pg_catalog.count(*)
        FROM outbox.dead_letter AS d
        WHERE d.cursor = c.name AND d.state = 'dead'
    ),
    (SELECT pg_catalog.count(*) FROM outbox.claim AS u WHERE u.relay = c.name AND u.state = 'unknown'), c.rule,
    c.open_since,
    CASE WHEN c.swept_at IS NOT DISTINCT FROM c.advanced_at THEN c.snapshot::text END, c.swept_column, c.position_order,
    c.position_columns,
    (
        SELECT s.last_error ->> 'code'
        FROM outbox.cursor_status AS s
        WHERE s.cursor = c.name AND s.halted AND s.fingerprint NOT LIKE 'check:%'
    )
FROM outbox.cursor AS c
LEFT JOIN outbox.control AS k ON k.cursor = c.name
WHERE c.relay = $1
ORDER BY c.name
