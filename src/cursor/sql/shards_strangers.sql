SELECT c.name, c.identity::text
FROM outbox.cursor AS c
WHERE c.relay = $1
    AND (c.identity ->> 'shards', c.identity ->> 'shard_key') IS DISTINCT FROM (
        $2::text::jsonb ->> 'shards', $2::text::jsonb ->> 'shard_key'
    )
ORDER BY c.name
