WITH ended AS (
    UPDATE outbox.schedule_watch SET ended_at = $4, seen_at = $4 WHERE watch_id = $5
) INSERT INTO outbox.schedule_watch (instance, relay, since, seen_at)
SELECT r.instance, $2, $3, $3
FROM outbox.replica AS r
WHERE r.instance = $1::text::uuid
RETURNING watch_id
