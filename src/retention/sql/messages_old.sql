SELECT name::text, state
FROM outbox.message_partition
WHERE upper <= pg_catalog.clock_timestamp() - pg_catalog.make_interval(secs => $1::float8)
ORDER BY upper
