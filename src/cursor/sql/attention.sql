SELECT n.name,
    (
        SELECT pg_catalog.count(*)
        FROM outbox.dead_letter AS d
        WHERE d.cursor = n.name AND d.state IN ('dead', 'redriving')
    ),
    (SELECT pg_catalog.count(*) FROM outbox.claim AS c WHERE c.relay = n.name AND c.state = 'unknown') + (
        SELECT pg_catalog.count(*) FROM outbox.request AS r WHERE r.relay = n.name AND r.status = 'unknown'
    ),
    (SELECT pg_catalog.count(*) FROM outbox.parked_key AS p WHERE p.cursor = n.name)
FROM pg_catalog.unnest($1::text[]) AS n(name)
