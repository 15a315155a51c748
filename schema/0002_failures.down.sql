-- Back to version 1. Dead letters are rows that nobody has: while one is open, this fails.
DROP VIEW outbox.status;
-- In the order in which turns take the same tables: in another order the two would wait for each other.
ALTER TABLE outbox.cursor DROP COLUMN partitions;
ALTER TABLE outbox.control DROP COLUMN adopt;
ALTER TABLE outbox.cursor_status DROP COLUMN circuit_opened_at;
-- Now that no turn has its tables: one that was under way may have put a row aside.
DO $$
BEGIN
    IF EXISTS (SELECT FROM outbox.dead_letter WHERE state IN ('dead', 'redriving')) THEN
        RAISE EXCEPTION 'outbox.dead_letter has open dead letters: redrive or discard them first';
    END IF;
END
$$;
DROP TABLE outbox.dead_letter;
CREATE VIEW outbox.status AS
SELECT COALESCE(c.name, s.cursor)                  AS name,
       COALESCE(c.relay, s.cursor)                 AS relay,
       c.position_created_at,
       c.position_id,
       COALESCE(h.application_name, c.advanced_by) AS holder,
       h.pid                                       AS holder_pid,
       c.advanced_at,
       COALESCE(k.paused, false)                   AS paused,
       COALESCE(s.halted, false)                   AS halted,
       s.last_error,
       c.observed_at
FROM outbox.cursor AS c
-- A relay that did not pass its checks has something to say before it has a cursor.
FULL JOIN outbox.cursor_status AS s ON s.cursor = c.name
LEFT JOIN outbox.control AS k ON k.cursor = COALESCE(c.name, s.cursor)
LEFT JOIN LATERAL (
    -- The row's xmax is the transaction that locks it; that transaction holds a lock on its own id.
    SELECT l.pid, a.application_name
    FROM pg_catalog.pg_locks AS l
    LEFT JOIN pg_catalog.pg_stat_activity AS a ON a.pid = l.pid
    WHERE l.locktype = 'transactionid' AND l.granted AND l.transactionid = c.xmax AND c.xmax <> '0'::xid
    LIMIT 1
) AS h ON true;
COMMENT ON VIEW outbox.status IS 'Where every cursor stands, those included that a relay could not make yet. Lag, backlog, state and horizon are computed by whoever asks: `outbox-relay status`.';
COMMENT ON COLUMN outbox.status.name IS 'The cursor''s name.';
COMMENT ON COLUMN outbox.status.relay IS 'The relay that it belongs to.';
COMMENT ON COLUMN outbox.status.position_created_at IS 'created_at of the last row that was passed; NULL is before every row.';
COMMENT ON COLUMN outbox.status.position_id IS 'Its id as text.';
COMMENT ON COLUMN outbox.status.holder IS 'The session that holds the lock now, else the replica that advanced it last.';
COMMENT ON COLUMN outbox.status.holder_pid IS 'Server process of the session that holds the lock now.';
COMMENT ON COLUMN outbox.status.advanced_at IS 'When it last advanced.';
COMMENT ON COLUMN outbox.status.paused IS 'Whether an operator has paused it.';
COMMENT ON COLUMN outbox.status.halted IS 'Whether it stands still after an error.';
COMMENT ON COLUMN outbox.status.last_error IS 'The last error: at, class, code, message, hint.';
COMMENT ON COLUMN outbox.status.observed_at IS 'The database''s clock at the last advance; a clock that is behind it has stepped back.';
COMMENT ON COLUMN outbox.control.seek_to IS 'Where to: {"created_at": ..., "id": ...}; NULL is before every row.';
-- The view is a new one: whoever may write cursors could read the old one.
DO $$
DECLARE
    role name;
BEGIN
    FOR role IN
        SELECT pg_catalog.pg_get_userbyid(a.grantee)
        FROM pg_catalog.pg_class AS c, pg_catalog.aclexplode(c.relacl) AS a
        WHERE c.oid = 'outbox.cursor'::regclass AND a.privilege_type = 'UPDATE' AND a.grantee NOT IN (0, c.relowner)
    LOOP
        EXECUTE pg_catalog.format('GRANT SELECT ON outbox.status TO %I', role);
    END LOOP;
END
$$;
