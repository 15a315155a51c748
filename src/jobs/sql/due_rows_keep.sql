UPDATE outbox.claim SET expires_at = pg_catalog.clock_timestamp() + pg_catalog.make_interval(secs => $4::float8),
    updated_at = pg_catalog.clock_timestamp()
WHERE relay = $1 AND key = $2::text[] AND token = $3
