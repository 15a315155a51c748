SELECT COALESCE(n.nspname::text, pg_catalog.split_part(c.identity ->> 'table', '.', 1)),
    COALESCE(
        r.relname::text, pg_catalog.substr(c.identity ->> 'table', pg_catalog.strpos(c.identity ->> 'table', '.') + 1)
    ),
    c.identity ->> 'sink' NOT IN ('due work', 'requests'), (c.identity ->> 'shards')::bigint, c.identity ->> 'shard_key'
FROM outbox.cursor AS c
LEFT JOIN pg_catalog.pg_class AS r ON r.oid = c.relations[1]
LEFT JOIN pg_catalog.pg_namespace AS n ON n.oid = r.relnamespace
WHERE c.name = $1 AND c.identity ->> 'table' IS NOT NULL
