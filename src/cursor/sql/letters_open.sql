-- There may be a million: a row for each cursor, with nothing but their numbers.
SELECT d.cursor, pg_catalog.array_agg(d.id ORDER BY d.created_at, d.id)
FROM outbox.dead_letter AS d
WHERE d.state IN ('dead', 'redriving')
    AND (d.cursor = $1 OR d.cursor IN (SELECT c.name FROM outbox.cursor AS c WHERE c.relay = $1))
GROUP BY d.cursor
ORDER BY d.cursor
