-- The newest first: a former name is met after the one that replaced it. What was moved back by a relay says its places as texts.
-- Discards that older versions noted name no rows.
SELECT o.id, CASE o.verb WHEN 'wish carried out' THEN 'change applied' ELSE o.verb END, o.cursor, o.detail ->> 'from',
    (o.detail -> 'from' ->> 'created_at')::timestamptz, o.detail -> 'from' ->> 'id',
    CASE
        WHEN o.verb = 'position moved back' THEN (o.detail ->> 'to')::timestamptz
        ELSE (t.place ->> 'created_at')::timestamptz
    END,
    t.place ->> 'id', (o.detail ->> 'number')::bigint, (o.detail ->> 'moved')::boolean, o.at
FROM outbox.operation AS o
CROSS JOIN LATERAL (
    SELECT o.detail -> CASE o.verb WHEN 'cursor skip' THEN 'row' WHEN 'cursor create' THEN 'at' ELSE 'to' END AS place
) AS t
WHERE o.verb IN (
    'cursor create', 'cursor seek', 'cursor skip', 'cursor adopt', 'cursor rename', 'cursor reshard', 'cursor remove',
    'change applied', 'wish carried out', 'position moved back'
) OR (o.verb = 'dead-letter discard' AND o.detail -> 'rows' IS NOT NULL)
ORDER BY o.id DESC
