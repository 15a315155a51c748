UPDATE outbox.cursor_status SET state = 'running', message_id = NULL, last_error = NULL, circuit_opened_at = NULL,
    updated_at = pg_catalog.clock_timestamp()
WHERE cursor = $1 AND NOT halted AND state <> 'running' AND last_error ->> 'class' IS DISTINCT FROM 'fatal'
    AND updated_at <= pg_catalog.clock_timestamp() - pg_catalog.make_interval(secs => $2::float8)
    AND NOT EXISTS (SELECT FROM outbox.claim AS c WHERE c.relay = $1 AND c.state = 'waiting' AND c.marked)
