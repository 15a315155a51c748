SELECT c.seek_applied >= $2,
    (
        SELECT (o.detail ->> 'moved')::boolean
        FROM outbox.operation AS o
        WHERE o.cursor = c.name AND o.verb IN ('change applied', 'wish carried out')
            AND (o.detail ->> 'number')::bigint = $2
        ORDER BY o.id DESC LIMIT 1
    )
FROM outbox.cursor AS c
WHERE c.name = $1
