-- Back to version 13. Rows that are parked have not been sent: they are not thrown away.
DROP TRIGGER rename_parked_keys ON outbox.cursor;
DROP TRIGGER keep_parked_keys ON outbox.cursor;
DROP FUNCTION outbox.keep_parked_keys();
DROP TRIGGER release_all_parked_keys ON outbox.dead_letter;
DROP TRIGGER release_parked_keys_of_deleted ON outbox.dead_letter;
DROP TRIGGER release_parked_keys ON outbox.dead_letter;
DROP FUNCTION outbox.release_parked_keys();
LOCK TABLE outbox.parked_key IN ACCESS EXCLUSIVE MODE;
DO $$
BEGIN
    IF EXISTS (SELECT FROM outbox.parked_key) THEN
        RAISE EXCEPTION 'there are parked keys, whose rows have not been sent' USING ERRCODE = 'object_not_in_prerequisite_state',
            HINT = 'Redrive or discard the dead letters that they wait for, and let the relay send them, before you go back.';
    END IF;
END
$$;
CREATE OR REPLACE VIEW outbox.hold AS
WITH stands AS (
    SELECT t.oid AS relation, c.name, c.position_created_at, c.position_id, c.token, COALESCE(k.paused, false) AS paused, COALESCE(s.halted, false) AS halted,
           k.seek_seq > c.seek_applied AS moves, k.seek_to
    FROM outbox.cursor AS c
    -- By its oid, whatever it is called now; and by its name, for a cursor that has not read yet, or was told to read another.
    JOIN (pg_catalog.pg_class AS t JOIN pg_catalog.pg_namespace AS n ON n.oid = t.relnamespace)
      ON t.relkind IN ('r', 'p') AND (t.oid = c.relations[1] OR n.nspname || '.' || t.relname = c.identity ->> 'table')
    LEFT JOIN outbox.control AS k ON k.cursor = c.name
    LEFT JOIN outbox.cursor_status AS s ON s.cursor = c.name
    WHERE COALESCE(c.identity ->> 'sink', '') NOT IN ('due work', 'requests')
)
SELECT relation, name AS cursor, 'cursor' AS kind, COALESCE(position_created_at, '-infinity') AS created_at, position_id AS id,
       pg_catalog.format('cursor %s at %s%s', name, COALESCE(position_created_at::text, 'the beginning'),
                         CASE WHEN paused THEN ', paused' WHEN halted THEN ', halted' ELSE '' END) AS held_by
FROM stands
UNION ALL
SELECT relation, name, 'wish', COALESCE((seek_to ->> 'created_at')::timestamptz, '-infinity'), seek_to ->> 'id',
       pg_catalog.format('cursor %s, which is to move to %s', name, COALESCE(seek_to ->> 'created_at', 'the beginning'))
FROM stands WHERE moves
UNION ALL
SELECT s.relation, s.name, 'dead_letter', d.created_at, NULL, pg_catalog.format('%s open dead letters of cursor %s', d.letters, s.name)
FROM stands AS s
JOIN (SELECT cursor, pg_catalog.min(created_at) AS created_at, pg_catalog.count(*) AS letters
      FROM outbox.dead_letter WHERE state IN ('dead', 'redriving') GROUP BY cursor) AS d ON d.cursor = s.name
UNION ALL
SELECT s.relation, s.name, 'unknown', u.created_at, NULL, pg_catalog.format('%s unknown outcomes of cursor %s', u.outcomes, s.name)
FROM stands AS s
JOIN (SELECT relay, pg_catalog.min(due_at) AS created_at, pg_catalog.count(*) AS outcomes
      FROM outbox.claim WHERE state = 'unknown' GROUP BY relay) AS u ON u.relay = s.name
UNION ALL
SELECT s.relation, s.name, 'in_flight', (SELECT pg_catalog.min((r ->> 'created_at')::timestamptz) FROM pg_catalog.jsonb_array_elements(s.token -> 'rows') AS r),
       NULL, pg_catalog.format('rows in flight of cursor %s', s.name)
FROM stands AS s WHERE pg_catalog.jsonb_typeof(s.token -> 'rows') = 'array' AND s.token -> 'rows' <> '[]';
COMMENT ON COLUMN outbox.hold.kind IS 'cursor: its position. wish: where an operator wants it. dead_letter, unknown: the oldest of them. in_flight: under at_most_once.';
DROP TABLE outbox.parked, outbox.parked_key;
