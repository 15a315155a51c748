-- Another version of the row would make what an interrupted turn has recorded of its progress count for nothing. The last 104 bytes of a
-- slice are its sums, and the first eight of these the number of its rows: one without rows goes on.
SELECT c.name, c.audit, pg_catalog.clock_timestamp() FROM outbox.cursor AS c
WHERE c.name = ANY ($1) AND c.audit IS NOT NULL
    AND pg_catalog.substr(c.audit, pg_catalog.octet_length(c.audit) - 103, 8) <> '\x0000000000000000'
    AND c.advanced_at < pg_catalog.clock_timestamp() - interval '1 minute'
    AND NOT EXISTS (SELECT FROM outbox.turn_progress AS k WHERE k.cursor = c.name AND k.written_at >= c.advanced_at)
LIMIT 20 FOR UPDATE OF c SKIP LOCKED
