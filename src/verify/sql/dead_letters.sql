-- Those of $4 and $5 are counted already.
WITH counted AS (
    SELECT r.created_at, r.id
    FROM ROWS FROM (pg_catalog.unnest($4::timestamptz[]), pg_catalog.unnest($5::text[])) AS r (created_at, id)
)
SELECT (
    SELECT pg_catalog.count(*)
    FROM outbox.dead_letter AS d
    WHERE d.cursor = ANY ($1) AND d.created_at >= $2 AND d.created_at < $3 AND d.state <> 'redriven'
        AND NOT EXISTS (SELECT FROM counted AS r WHERE r.created_at = d.created_at AND r.id = d.message_id)
), (
    SELECT pg_catalog.count(*)
    FROM outbox.parked AS p
    WHERE p.cursor = ANY ($1) AND p.created_at >= $2 AND p.created_at < $3
        AND NOT EXISTS (SELECT FROM counted AS r WHERE r.created_at = p.created_at AND r.id = p.message_id)
        -- The row that its key waits for is counted as a dead letter.
        AND NOT EXISTS (
            SELECT FROM outbox.dead_letter AS l
            WHERE l.cursor = p.cursor AND l.created_at = p.created_at AND l.message_id = p.message_id AND l.state <> 'redriven'
        )
)
