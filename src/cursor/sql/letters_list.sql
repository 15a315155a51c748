SELECT l.id, l.cursor, l.source, l.created_at, l.message_id, l.sink || ' ' || l.target, l.key,
    -- It may have megabytes: it is read for one that is shown, not for those that are listed.
    CASE WHEN $3::boolean THEN l.payload END, l.state, l.attempts, l.dead_lettered_at, l.error::text,
    (SELECT pg_catalog.sum(k.rows)::bigint FROM outbox.parked_key AS k WHERE k.letter = l.id AND NOT k.released)
FROM (
    SELECT d.*
    FROM outbox.dead_letter AS d
    WHERE CASE WHEN $1::bigint[] IS NULL THEN d.state IN ('dead', 'redriving')
        AND (
            $2::text IS NULL OR d.cursor = $2 OR d.cursor IN (SELECT c.name FROM outbox.cursor AS c WHERE c.relay = $2)
        ) ELSE d.id = ANY ($1) END
    ORDER BY d.cursor, d.created_at, d.id
    LIMIT $4::bigint
) AS l
ORDER BY l.cursor, l.created_at, l.id
