-- What is only kept after its last comparison, an hour after its end, is due again later than that.
SELECT pg_catalog.count(*) FROM outbox.audit_slice AS s
WHERE s.cursor = ANY ($1::text[]) AND (s.checks = 0 OR s.check_at < s.ended_at + interval '2 hours')
