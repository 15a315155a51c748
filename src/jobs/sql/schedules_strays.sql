UPDATE outbox.schedule AS s SET next_at = 'infinity',
    problem = 'relay_unknown: no relay ' || s.relay
    || ' has been started with [relay.source.schedule]; the known ones: ' || COALESCE(
        (
            SELECT pg_catalog.string_agg(c.relay, ', ' ORDER BY c.relay)
            FROM outbox.cursor AS c
            WHERE c.identity ->> 'table' = 'outbox.action'
        ),
        'none'
    )
WHERE s.schedule_id IN (
    SELECT o.schedule_id
    FROM outbox.schedule AS o
    WHERE o.enabled AND o.next_at IS NULL
        AND NOT EXISTS (
            SELECT FROM outbox.cursor AS c WHERE c.name = o.relay AND c.identity ->> 'table' = 'outbox.action'
        )
    LIMIT 100
    FOR NO KEY UPDATE SKIP LOCKED
)
RETURNING s.name, s.relay
