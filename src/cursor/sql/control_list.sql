SELECT name, relay, position_created_at, position_id, holder, holder_pid, advanced_at, paused, halted, last_error::text,
    observed_at, circuit_opened_at,
    dead_letters + (
        SELECT pg_catalog.count(*)
        FROM outbox.request AS r
        WHERE r.relay = s.relay AND r.status = 'failed' AND r.error ->> 'code' IS DISTINCT FROM 'discarded'
    ),
    EXISTS (
        SELECT FROM outbox.cursor_status AS c WHERE c.cursor = s.name AND c.halted AND c.fingerprint LIKE 'check:%'
    ),
    EXISTS (SELECT FROM outbox.cursor AS c WHERE c.name = s.name),
    (SELECT pg_catalog.count(*) FROM outbox.dead_letter AS d WHERE d.cursor = s.name AND d.error ? 'late'),
    (SELECT pg_catalog.count(*) FROM outbox.parked_key AS p WHERE p.cursor = s.name)
FROM outbox.status AS s
ORDER BY name
