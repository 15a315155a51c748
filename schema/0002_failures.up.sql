-- What happens when publishing fails, and what operators may ask for then. Only expands: programs built for version 1 go on.

CREATE TABLE outbox.dead_letter (
    id               bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    cursor           text        NOT NULL,
    source           text        NOT NULL,
    created_at       timestamptz NOT NULL,
    message_id       text        NOT NULL,
    sink             text        NOT NULL,
    target           text        NOT NULL,
    key              text,
    payload          bytea,
    fields           text[]      NOT NULL,
    field_values     bytea[]     NOT NULL,
    error            jsonb       NOT NULL,
    attempts         integer     NOT NULL DEFAULT 1,
    state            text        NOT NULL DEFAULT 'dead',
    dead_lettered_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    dead_lettered_by text        NOT NULL,
    requested_at     timestamptz,
    requested_by     text,
    resolved_at      timestamptz,
    resolved_by      text,
    CONSTRAINT dead_letter_once UNIQUE (cursor, created_at, message_id),
    CONSTRAINT dead_letter_state_known CHECK (state IN ('dead', 'redriving', 'redriven', 'discarded'))
);
CREATE INDEX dead_letter_open ON outbox.dead_letter (cursor) WHERE state IN ('dead', 'redriving');
-- Every look of a replica asks whether there is one.
CREATE INDEX dead_letter_redriving ON outbox.dead_letter (cursor, created_at, id) WHERE state = 'redriving';
COMMENT ON TABLE outbox.dead_letter IS 'Rows that the receiver would never accept, put aside by on_poison = "dead_letter" in the transaction that advanced over them.';
COMMENT ON COLUMN outbox.dead_letter.id IS 'Number of the dead letter.';
COMMENT ON COLUMN outbox.dead_letter.cursor IS 'The cursor that advanced over the row.';
COMMENT ON COLUMN outbox.dead_letter.source IS 'The table that the row stands in.';
COMMENT ON COLUMN outbox.dead_letter.created_at IS 'The row''s place in the order.';
COMMENT ON COLUMN outbox.dead_letter.message_id IS 'The row''s id as text; the message keeps it when it is sent again.';
COMMENT ON COLUMN outbox.dead_letter.sink IS 'Kind of the sink: kafka, http, sms, stdout.';
COMMENT ON COLUMN outbox.dead_letter.target IS 'Where it should have gone.';
COMMENT ON COLUMN outbox.dead_letter.key IS 'Its key, where the sink has one.';
COMMENT ON COLUMN outbox.dead_letter.payload IS 'The payload as sent; NULL when none could be made of the row.';
COMMENT ON COLUMN outbox.dead_letter.fields IS 'What was read of the row: one word for each field.';
COMMENT ON COLUMN outbox.dead_letter.field_values IS 'The values read, so that the message can be made again when the row itself is gone.';
COMMENT ON COLUMN outbox.dead_letter.error IS 'Why: at, class, code, message, hint.';
COMMENT ON COLUMN outbox.dead_letter.attempts IS 'How often it was refused.';
COMMENT ON COLUMN outbox.dead_letter.state IS 'dead: waits for an operator. redriving: is sent again by the cursor''s next turn. redriven: was accepted. discarded: given up by an operator.';
COMMENT ON COLUMN outbox.dead_letter.dead_lettered_at IS 'When it was put aside, the last time.';
COMMENT ON COLUMN outbox.dead_letter.dead_lettered_by IS 'The replica that did.';
COMMENT ON COLUMN outbox.dead_letter.requested_at IS 'When an operator asked for it to be sent again.';
COMMENT ON COLUMN outbox.dead_letter.requested_by IS 'Who asked.';
COMMENT ON COLUMN outbox.dead_letter.resolved_at IS 'When it was accepted or discarded.';
COMMENT ON COLUMN outbox.dead_letter.resolved_by IS 'The replica or the operator that did.';

ALTER TABLE outbox.cursor ADD COLUMN partitions integer;
COMMENT ON COLUMN outbox.cursor.partitions IS 'How many partitions the topic had when keys were first spread over them; NULL where that does not matter.';

ALTER TABLE outbox.control ADD COLUMN adopt jsonb;
COMMENT ON COLUMN outbox.control.adopt IS 'What an operator has accepted for the cursor: {"number": of the wish (seek_seq), "identity": ..., "root": oid, "relations": [oid, ...], "partitions": n}. A turn whose own facts are exactly these takes them over.';
COMMENT ON COLUMN outbox.control.seek_to IS 'Where to: {"created_at": ..., "id": ...}; NULL is before every row. With "from" in the same form, only if the cursor stands there.';

ALTER TABLE outbox.cursor_status ADD COLUMN circuit_opened_at timestamptz;
COMMENT ON COLUMN outbox.cursor_status.circuit_opened_at IS 'Since when the sink''s circuit has been open: it is out, and one relay at a time tries it; NULL while it is closed.';

CREATE OR REPLACE VIEW outbox.status AS
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
       c.observed_at,
       s.circuit_opened_at,
       (SELECT pg_catalog.count(*) FROM outbox.dead_letter AS d
        WHERE d.cursor = COALESCE(c.name, s.cursor) AND d.state IN ('dead', 'redriving')) AS dead_letters
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
COMMENT ON COLUMN outbox.status.circuit_opened_at IS 'Since when the sink''s circuit has been open; NULL while it is closed.';
COMMENT ON COLUMN outbox.status.dead_letters IS 'Dead letters that wait for an operator or for their turn.';

-- Relays that run already need it from their next look on: whoever may write cursors may write dead letters.
DO $$
DECLARE
    role name;
BEGIN
    FOR role IN
        SELECT pg_catalog.pg_get_userbyid(a.grantee)
        FROM pg_catalog.pg_class AS c, pg_catalog.aclexplode(c.relacl) AS a
        WHERE c.oid = 'outbox.cursor'::regclass AND a.privilege_type = 'UPDATE' AND a.grantee NOT IN (0, c.relowner)
    LOOP
        EXECUTE pg_catalog.format('GRANT SELECT, INSERT, UPDATE ON outbox.dead_letter TO %I', role);
    END LOOP;
END
$$;

INSERT INTO outbox.version (version, oldest_binary) VALUES (2, 1);
