-- The newest first: a former name is met after the one that replaced it. Instants are read as texts, because older versions wrote years
-- in a form that PostgreSQL does not read; what was moved back by a relay says its place as one text. Discards that older versions noted
-- name no rows, and changes that their replicas carried out no place. Another number of partitions of a topic says nothing of rows. A
-- reshard says where the new cursors began as the text of a position.
SELECT o.id, CASE o.verb WHEN 'wish carried out' THEN 'change applied' ELSE o.verb END, o.cursor, o.detail ->> 'from',
    o.detail -> 'from' ->> 'created_at', o.detail -> 'from' ->> 'id',
    CASE o.verb
        WHEN 'position moved back' THEN o.detail ->> 'to'
        WHEN 'cursor reshard' THEN pg_catalog.substring(o.detail ->> 'at', '^\((.*), before every id\)$')
        ELSE t.place ->> 'created_at'
    END,
    t.place ->> 'id', (o.detail ->> 'number')::bigint, (o.detail ->> 'moved')::boolean, o.at,
    COALESCE(o.verb = 'change applied' AND o.detail ? 'position', false),
    o.verb = 'cursor adopt' AND COALESCE((
        SELECT pg_catalog.bool_and(c.change ->> 'field' = 'topic partitions')
        FROM pg_catalog.jsonb_array_elements(o.detail -> 'changes') AS c (change)
    ), false)
FROM outbox.operation AS o
CROSS JOIN LATERAL (
    SELECT o.detail -> CASE o.verb
        WHEN 'cursor skip' THEN 'row'
        WHEN 'cursor create' THEN 'at'
        WHEN 'change applied' THEN 'position'
        ELSE 'to'
    END AS place
) AS t
WHERE o.verb IN (
    'cursor create', 'cursor seek', 'cursor skip', 'cursor adopt', 'cursor rename', 'cursor reshard', 'cursor remove',
    'change applied', 'wish carried out', 'position moved back'
) OR (o.verb = 'dead-letter discard' AND o.detail -> 'rows' IS NOT NULL)
ORDER BY o.id DESC
