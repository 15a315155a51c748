-- Another version of the row would make what an interrupted turn has recorded of its progress count for nothing.
SELECT c.name, c.audit FROM outbox.cursor AS c
WHERE c.name = ANY ($1) AND c.audit IS NOT NULL AND c.advanced_at < pg_catalog.clock_timestamp() - interval '1 minute'
    AND NOT EXISTS (SELECT FROM outbox.turn_progress AS k WHERE k.cursor = c.name AND k.written_at >= c.advanced_at)
LIMIT 20 FOR UPDATE OF c SKIP LOCKED
