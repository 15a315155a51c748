-- What only stays after its last comparison is due again $2 seconds after its end, or later.
SELECT pg_catalog.count(*) FROM outbox.audit_slice AS s
WHERE s.cursor = ANY ($1::text[]) AND (s.checks = 0 OR s.check_at < s.ended_at + pg_catalog.make_interval(secs => $2))
