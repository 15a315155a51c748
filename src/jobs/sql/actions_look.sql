SELECT pg_catalog.statement_timestamp(),
    (SELECT a.try_at FROM outbox.action AS a WHERE a.relay = $1 AND a.status = 'due' ORDER BY a.try_at LIMIT 1),
    EXISTS (
        SELECT
        FROM outbox.action AS a
        WHERE a.relay = $1 AND a.status = 'running' AND a.expires_at <= pg_catalog.statement_timestamp()
    ),
    EXISTS (SELECT FROM outbox.action AS a WHERE a.relay = $1 AND a.status = 'running')
