SELECT relay, pg_catalog.count(*)
FROM outbox.sent
WHERE relay <> ALL ($1) AND sent_at < pg_catalog.clock_timestamp() - pg_catalog.make_interval(secs => $2::float8)
GROUP BY relay
ORDER BY relay
