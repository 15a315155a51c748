SELECT s.schedule_id, s.name, s.tenant, s.rule, s.time_zone, s.starts_at, s.ends_at, s.changed_at, s.next_at, s.last_at,
    s.missed, pg_catalog.pg_column_size(s.payload)
FROM outbox.schedule AS s
WHERE s.relay = $1 AND s.enabled AND s.next_at < 'infinity' AND s.next_at <= pg_catalog.statement_timestamp()
ORDER BY s.next_at LIMIT $2
FOR NO KEY UPDATE SKIP LOCKED
