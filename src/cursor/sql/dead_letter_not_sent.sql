UPDATE outbox.dead_letter SET state = 'redriving', resolved_at = NULL, resolved_by = NULL WHERE id = $1
