WITH changed AS (
    UPDATE outbox.dead_letter SET state = 'discarded', resolved_at = pg_catalog.clock_timestamp(),
        resolved_by = session_user || '/' || $2
    WHERE id = ANY ($1) AND state IN ('dead', 'redriving')
    RETURNING id, cursor, created_at, message_id
), numbered AS (
    -- One note has room for so many rows.
    SELECT c.*, (pg_catalog.row_number() OVER (PARTITION BY c.cursor ORDER BY c.id) - 1) / 1000 AS part
    FROM changed AS c
), noted AS (
    -- The rows, too: retention removes the letters, and a row that was given up is still to be told from one that was lost.
    INSERT INTO outbox.operation (operator, verb, cursor, detail)
    SELECT session_user || '/' || $2, 'dead-letter discard', n.cursor, pg_catalog.jsonb_build_object(
        'ids', pg_catalog.jsonb_agg(n.id ORDER BY n.id),
        'rows', pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object('id', n.message_id, 'created_at', n.created_at) ORDER BY n.id)
    )
    FROM numbered AS n
    GROUP BY n.cursor, n.part
)
SELECT pg_catalog.count(*) FROM changed
