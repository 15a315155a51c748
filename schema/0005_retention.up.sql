-- Retention: what is done with may be taken away. The rules stand in functions that run as the owner, so that the relay's
-- role deletes nothing else. Only expands: programs built for versions 1 to 4 go on.

-- A pass begins with what has been done with for the longest time.
CREATE INDEX dead_letter_resolved ON outbox.dead_letter (resolved_at) WHERE state IN ('redriven', 'discarded');

CREATE FUNCTION outbox.prune_requests(older_than interval, most integer) RETURNS integer
    LANGUAGE sql SECURITY DEFINER SET search_path = ''
AS $$
    WITH old AS (
        SELECT r.request_id FROM outbox.request AS r
        WHERE r.status = 'completed'
          AND r.completed_at < pg_catalog.clock_timestamp() - GREATEST(older_than, interval '0')
          AND COALESCE(r.dedupe_until < pg_catalog.clock_timestamp(), r.dedupe_key IS NULL)
        ORDER BY r.completed_at LIMIT most FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM outbox.request AS r USING old WHERE r.request_id = old.request_id RETURNING 1
    )
    SELECT pg_catalog.count(*)::integer FROM gone
$$;
COMMENT ON FUNCTION outbox.prune_requests(interval, integer) IS 'Deletes completed requests older than this, at most so many, oldest first: never before dedupe_until has passed, and never one whose dedupe_key holds for ever. Gives their number.';

CREATE FUNCTION outbox.prune_dead_letters(older_than interval, most integer) RETURNS integer
    LANGUAGE sql SECURITY DEFINER SET search_path = ''
AS $$
    WITH old AS (
        SELECT d.id FROM outbox.dead_letter AS d
        WHERE d.state IN ('redriven', 'discarded')
          AND d.resolved_at < pg_catalog.clock_timestamp() - GREATEST(older_than, interval '0')
        ORDER BY d.resolved_at LIMIT most FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM outbox.dead_letter AS d USING old WHERE d.id = old.id RETURNING 1
    )
    SELECT pg_catalog.count(*)::integer FROM gone
$$;
COMMENT ON FUNCTION outbox.prune_dead_letters(interval, integer) IS 'Deletes dead letters that were redriven or discarded longer ago than this, at most so many, oldest first. Gives their number.';

REVOKE ALL ON FUNCTION outbox.prune_requests(interval, integer), outbox.prune_dead_letters(interval, integer) FROM PUBLIC;

CREATE VIEW outbox.hold AS
WITH stands AS (
    SELECT t.oid AS relation, c.*, COALESCE(k.paused, false) AS paused, COALESCE(s.halted, false) AS halted,
           k.seek_seq > c.seek_applied AS moves, k.seek_to
    FROM outbox.cursor AS c
    -- By its oid, whatever it is called now; and by its name, for a cursor that has not read yet, or was told to read another.
    JOIN (pg_catalog.pg_class AS t JOIN pg_catalog.pg_namespace AS n ON n.oid = t.relnamespace)
      ON t.relkind IN ('r', 'p') AND (t.oid = c.relations[1] OR n.nspname || '.' || t.relname = c.identity ->> 'table')
    LEFT JOIN outbox.control AS k ON k.cursor = c.name
    LEFT JOIN outbox.cursor_status AS s ON s.cursor = c.name
    WHERE c.identity ->> 'sink' IS DISTINCT FROM 'due work'
)
SELECT relation, name AS cursor, COALESCE(position_created_at, '-infinity') AS created_at, position_id AS id,
       pg_catalog.format('cursor %s at %s%s', name, COALESCE(position_created_at::text, 'the beginning'),
                         CASE WHEN paused THEN ', paused' WHEN halted THEN ', halted' ELSE '' END) AS held_by
FROM stands
UNION ALL
SELECT relation, name, COALESCE((seek_to ->> 'created_at')::timestamptz, '-infinity'), seek_to ->> 'id',
       pg_catalog.format('cursor %s, which is to move to %s', name, COALESCE(seek_to ->> 'created_at', 'the beginning'))
FROM stands WHERE moves
UNION ALL
SELECT s.relation, s.name, d.created_at, NULL, pg_catalog.format('%s open dead letters of cursor %s', d.letters, s.name)
FROM stands AS s
JOIN (SELECT cursor, pg_catalog.min(created_at) AS created_at, pg_catalog.count(*) AS letters
      FROM outbox.dead_letter WHERE state IN ('dead', 'redriving') GROUP BY cursor) AS d ON d.cursor = s.name
UNION ALL
SELECT s.relation, s.name, u.created_at, NULL, pg_catalog.format('%s unknown outcomes of cursor %s', u.outcomes, s.name)
FROM stands AS s
JOIN (SELECT relay, pg_catalog.min(due_at) AS created_at, pg_catalog.count(*) AS outcomes
      FROM outbox.claim WHERE state = 'unknown' GROUP BY relay) AS u ON u.relay = s.name
UNION ALL
SELECT s.relation, s.name, (SELECT pg_catalog.min((r ->> 'created_at')::timestamptz) FROM pg_catalog.jsonb_array_elements(s.token -> 'rows') AS r),
       NULL, pg_catalog.format('rows in flight of cursor %s', s.name)
FROM stands AS s WHERE pg_catalog.jsonb_typeof(s.token -> 'rows') = 'array' AND s.token -> 'rows' <> '[]';
COMMENT ON VIEW outbox.hold IS 'What keeps rows of a table that streams are read from: everything from created_at on. Due work is not here: its rows say by themselves whether they were sent.';
COMMENT ON COLUMN outbox.hold.relation IS 'The table''s oid.';
COMMENT ON COLUMN outbox.hold.cursor IS 'The cursor, whether or not a configuration knows its relay.';
COMMENT ON COLUMN outbox.hold.created_at IS 'Rows before it are not held by this; -infinity holds every row.';
COMMENT ON COLUMN outbox.hold.id IS 'Of a position, its id: the rows of that instant up to it have been passed.';
COMMENT ON COLUMN outbox.hold.held_by IS 'In words.';

CREATE VIEW outbox.safe_to_delete AS
SELECT n.nspname AS schema, t.relname AS name, l.relays, l.created_at,
       CASE WHEN pg_catalog.count(h.id) = pg_catalog.count(*) AND pg_catalog.min(h.id) = pg_catalog.max(h.id) THEN pg_catalog.min(h.id) END AS id,
       pg_catalog.string_agg(h.held_by, '; ' ORDER BY h.held_by) AS held_by
FROM (SELECT relation, pg_catalog.array_agg(DISTINCT cursor ORDER BY cursor) AS relays, pg_catalog.min(created_at) AS created_at
      FROM outbox.hold GROUP BY relation) AS l
JOIN outbox.hold AS h ON h.relation = l.relation AND h.created_at = l.created_at
JOIN pg_catalog.pg_class AS t ON t.oid = l.relation
JOIN pg_catalog.pg_namespace AS n ON n.oid = t.relnamespace
GROUP BY n.nspname, t.relname, l.relays, l.created_at;
COMMENT ON VIEW outbox.safe_to_delete IS 'For each table that streams are read from: rows before created_at have been passed by every cursor, and no open dead letter, unknown outcome or wish to move back needs them. A table without a cursor is not here.';
COMMENT ON COLUMN outbox.safe_to_delete.schema IS 'The table''s schema.';
COMMENT ON COLUMN outbox.safe_to_delete.name IS 'The table.';
COMMENT ON COLUMN outbox.safe_to_delete.relays IS 'The cursors on it.';
COMMENT ON COLUMN outbox.safe_to_delete.created_at IS 'Rows before it may be deleted; -infinity: none.';
COMMENT ON COLUMN outbox.safe_to_delete.id IS 'Where one position alone is the bound, its id.';
COMMENT ON COLUMN outbox.safe_to_delete.held_by IS 'Who holds the rows from there on.';

-- Relays that run already may prune from their next pass on: whoever may write cursors may.
DO $$
DECLARE
    role name;
BEGIN
    FOR role IN
        SELECT pg_catalog.pg_get_userbyid(a.grantee)
        FROM pg_catalog.pg_class AS c, pg_catalog.aclexplode(c.relacl) AS a
        WHERE c.oid = 'outbox.cursor'::regclass AND a.privilege_type = 'UPDATE' AND a.grantee NOT IN (0, c.relowner)
    LOOP
        EXECUTE pg_catalog.format('GRANT SELECT ON outbox.hold, outbox.safe_to_delete TO %I', role);
        EXECUTE pg_catalog.format('GRANT EXECUTE ON FUNCTION outbox.prune_requests(interval, integer), '
                                  'outbox.prune_dead_letters(interval, integer) TO %I', role);
    END LOOP;
END
$$;

INSERT INTO outbox.version (version, oldest_binary) VALUES (5, 1);
