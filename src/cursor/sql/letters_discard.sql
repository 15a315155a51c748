UPDATE outbox.dead_letter SET state = 'discarded', resolved_at = pg_catalog.clock_timestamp(),
    resolved_by = session_user || '/' || $2
WHERE id = ANY ($1) AND state IN ('dead', 'redriving')
RETURNING id, cursor
