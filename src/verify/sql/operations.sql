SELECT o.verb, o.cursor, o.detail ->> 'id', o.detail ->> 'from',
       (o.detail -> 'from' ->> 'created_at')::timestamptz, (o.detail -> 'to' ->> 'created_at')::timestamptz,
       (o.detail -> 'at' ->> 'created_at')::timestamptz
FROM outbox.operation AS o
WHERE o.verb IN ('cursor create', 'cursor seek', 'cursor skip', 'cursor rename', 'cursor reshard')
ORDER BY o.id DESC
