SELECT k.key, k.rows, k.released, k.since, k.since_id,
    (
        SELECT p.created_at FROM outbox.parked AS p
        WHERE p.cursor = k.cursor AND p.key = k.key
        ORDER BY p.created_at DESC, p.seq DESC LIMIT 1
    )
FROM outbox.parked_key AS k
WHERE k.cursor = $1
