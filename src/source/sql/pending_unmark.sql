WITH u AS (DELETE FROM outbox.sent WHERE relay = $1::text AND key = $2::text[] RETURNING 1)
SELECT true, true
FROM (SELECT pg_catalog.count(*) FROM u) AS done
