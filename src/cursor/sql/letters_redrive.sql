UPDATE outbox.dead_letter SET state = 'redriving', requested_at = pg_catalog.clock_timestamp(),
    requested_by = session_user || '/' || $2
WHERE id = ANY ($1) AND state = 'dead'
RETURNING id, cursor
