SELECT (
    SELECT pg_catalog.count(*)
    FROM outbox.dead_letter AS d
    WHERE d.cursor = ANY ($1) AND d.created_at >= $2 AND d.created_at < $3 AND d.state <> 'redriven'
), (
    SELECT pg_catalog.count(*)
    FROM outbox.parked AS p
    WHERE p.cursor = ANY ($1) AND p.created_at >= $2 AND p.created_at < $3
        -- The row that its key waits for is counted as a dead letter.
        AND NOT EXISTS (
            SELECT FROM outbox.dead_letter AS l
            WHERE l.cursor = p.cursor AND l.created_at = p.created_at AND l.message_id = p.message_id AND l.state <> 'redriven'
        )
)
