SELECT pg_catalog.statement_timestamp(),
    (
        SELECT s.next_at
        FROM outbox.schedule AS s
        WHERE s.relay = $1 AND s.enabled AND s.next_at < 'infinity'
        ORDER BY s.next_at LIMIT 1
    ),
    EXISTS (SELECT FROM outbox.schedule AS s WHERE s.relay = $1 AND s.enabled AND s.next_at IS NULL)
