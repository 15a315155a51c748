SELECT s.schedule_id, s.name, s.tenant, s.rule, s.time_zone, s.starts_at, s.ends_at, s.changed_at, s.next_at, s.last_at,
    s.missed, pg_catalog.pg_column_size(s.payload)
FROM outbox.schedule AS s
WHERE s.relay = $1 AND s.enabled AND s.next_at IS NULL LIMIT $2
FOR NO KEY UPDATE SKIP LOCKED
