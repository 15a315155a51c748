SELECT pg_catalog.count(*)
FROM outbox.dead_letter AS d
WHERE d.cursor = ANY ($1) AND d.created_at >= $2 AND d.created_at < $3 AND d.state <> 'redriven'
