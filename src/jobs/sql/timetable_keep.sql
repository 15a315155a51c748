SELECT pg_catalog.clock_timestamp(), s.relay, s.name, s.tenant
FROM outbox.schedule AS s
WHERE s.schedule_id = $1 FOR KEY SHARE
