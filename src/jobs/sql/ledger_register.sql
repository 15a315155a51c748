INSERT INTO outbox.template (name, relay)
SELECT t.name, $1
FROM pg_catalog.unnest($2::text[]) AS t(name)
ON CONFLICT DO NOTHING
