SELECT n
FROM pg_catalog.unnest($1::text[]) AS n
WHERE NOT EXISTS (SELECT FROM outbox.cursor AS c WHERE c.name = n)
LIMIT 1
