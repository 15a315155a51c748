SELECT id, cursor, source, created_at, message_id, sink || ' ' || target, key,
    CASE WHEN $1::bigint[] IS NOT NULL THEN payload END, state, attempts, dead_lettered_at, error::text,
    (SELECT pg_catalog.sum(k.rows)::bigint FROM outbox.parked_key AS k WHERE k.letter = dead_letter.id AND NOT k.released)
FROM outbox.dead_letter
WHERE CASE WHEN $1::bigint[] IS NULL THEN state IN ('dead', 'redriving')
    AND (
        $2::text IS NULL OR cursor = $2 OR cursor IN (SELECT c.name FROM outbox.cursor AS c WHERE c.relay = $2)
    ) ELSE id = ANY ($1) END
ORDER BY cursor, created_at, id
