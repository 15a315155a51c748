-- Letters that were given up before a reshard ended their cursor; since then another relay may have had its name. The last one of a row is
-- of the oldest set of cursors.
SELECT d.message_id, d.created_at, f.number
FROM ROWS FROM (pg_catalog.unnest($1::text[]), pg_catalog.unnest($2::timestamptz[])) WITH ORDINALITY AS f (cursor, ended_at, number)
JOIN outbox.dead_letter AS d ON d.cursor = f.cursor AND d.resolved_at <= f.ended_at
WHERE d.state = 'discarded' AND d.message_id = ANY ($3)
ORDER BY f.number
