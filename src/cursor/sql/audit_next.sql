UPDATE outbox.audit_slice SET checks = checks + 1, check_at = ended_at + pg_catalog.make_interval(secs => $3)
WHERE id = $1 AND checks = $2
