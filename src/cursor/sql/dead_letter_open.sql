SELECT pg_catalog.count(*) FROM outbox.dead_letter WHERE cursor = $1 AND state IN ('dead', 'redriving')
