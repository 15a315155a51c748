UPDATE outbox.claim SET lane = NULL
WHERE relay = $1 AND state = 'claimed' AND lane IS NOT NULL AND expires_at <= pg_catalog.clock_timestamp()
