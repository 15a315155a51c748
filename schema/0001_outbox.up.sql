-- The relay's own schema: cursors, what operators want, what relays have to say, and a ready-made outbox.

CREATE SCHEMA outbox;
COMMENT ON SCHEMA outbox IS 'outbox-relay: moves committed rows to Kafka, SMS and HTTP, in order and without loss.';

CREATE TABLE outbox.version (
    version        integer     NOT NULL PRIMARY KEY,
    oldest_binary  integer     NOT NULL,
    applied_at     timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    applied_by     text        NOT NULL DEFAULT session_user
);
COMMENT ON TABLE outbox.version IS 'One row for each migration that has been applied; the highest is the version of the schema.';
COMMENT ON COLUMN outbox.version.version IS 'Number of the migration.';
COMMENT ON COLUMN outbox.version.oldest_binary IS 'The oldest schema version that a program may have been built for and still work with this schema.';
COMMENT ON COLUMN outbox.version.applied_at IS 'When it was applied.';
COMMENT ON COLUMN outbox.version.applied_by IS 'The role that applied it.';

-- A turn rewrites its cursor's row; room in the page keeps the new version beside the old one (HOT), and frequent
-- vacuuming keeps dead versions few.
CREATE TABLE outbox.cursor (
    name                text        NOT NULL PRIMARY KEY,
    relay               text        NOT NULL,
    identity            jsonb,
    position_created_at timestamptz,
    position_id         text,
    observed_at         timestamptz,
    snapshot            pg_snapshot,
    relations           oid[],
    token               jsonb,
    seek_applied        bigint      NOT NULL DEFAULT 0,
    advanced_at         timestamptz,
    advanced_by         text,
    created_at          timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    updated_at          timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    CONSTRAINT cursor_position_id_needs_created_at CHECK (position_id IS NULL OR position_created_at IS NOT NULL)
) WITH (fillfactor = 10, autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE outbox.cursor IS 'Named, lockable rows that own a position. Turns lock them, and nothing else should: use outbox.control.';
COMMENT ON COLUMN outbox.cursor.name IS 'The cursor''s name: its relay''s.';
COMMENT ON COLUMN outbox.cursor.relay IS 'The relay that it belongs to.';
COMMENT ON COLUMN outbox.cursor.identity IS 'What it belongs to: table, kind and target of the sink, database system. Another configuration under its name is refused.';
COMMENT ON COLUMN outbox.cursor.position_created_at IS 'created_at of the last row that was passed; NULL is before every row.';
COMMENT ON COLUMN outbox.cursor.position_id IS 'Its id as text; NULL sorts before every id of that instant.';
COMMENT ON COLUMN outbox.cursor.observed_at IS 'The database''s clock, read before the scan that the last advance rests on. An older clock now means that it has stepped back.';
COMMENT ON COLUMN outbox.cursor.snapshot IS 'The snapshot that the last rows were read with.';
COMMENT ON COLUMN outbox.cursor.relations IS 'The table''s oid, then the oids of the table and its descendants that the cursor has known.';
COMMENT ON COLUMN outbox.cursor.token IS 'Reserved: names what is in flight under at_most_once.';
COMMENT ON COLUMN outbox.cursor.seek_applied IS 'Number of the last seek (outbox.control.seek_seq) that was carried out.';
COMMENT ON COLUMN outbox.cursor.advanced_at IS 'When it last advanced.';
COMMENT ON COLUMN outbox.cursor.advanced_by IS 'The replica that advanced it last.';
COMMENT ON COLUMN outbox.cursor.created_at IS 'When the cursor was made.';
COMMENT ON COLUMN outbox.cursor.updated_at IS 'When the row was last written.';

CREATE TABLE outbox.control (
    cursor     text        NOT NULL PRIMARY KEY,
    paused     boolean     NOT NULL DEFAULT false,
    paused_at  timestamptz,
    paused_by  text,
    seek_seq   bigint      NOT NULL DEFAULT 0,
    seek_to    jsonb,
    updated_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp()
);
COMMENT ON TABLE outbox.control IS 'What operators want of a cursor. Read by every turn, locked by none: UPDATE it at any time.';
COMMENT ON COLUMN outbox.control.cursor IS 'The cursor''s name.';
COMMENT ON COLUMN outbox.control.paused IS 'Whether the cursor shall stand still until it is resumed.';
COMMENT ON COLUMN outbox.control.paused_at IS 'Since when.';
COMMENT ON COLUMN outbox.control.paused_by IS 'Who paused it.';
COMMENT ON COLUMN outbox.control.seek_seq IS 'Number of the last wish to move the position; a turn carries it out when it is above outbox.cursor.seek_applied.';
COMMENT ON COLUMN outbox.control.seek_to IS 'Where to: {"created_at": ..., "id": ...}; NULL is before every row.';
COMMENT ON COLUMN outbox.control.updated_at IS 'When the row was last written.';

CREATE TABLE outbox.cursor_status (
    cursor      text        NOT NULL PRIMARY KEY,
    state       text        NOT NULL DEFAULT 'running',
    halted      boolean     NOT NULL DEFAULT false,
    fingerprint text,
    message_id  text,
    last_error  jsonb,
    updated_at  timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    CONSTRAINT cursor_status_state_known CHECK (state IN ('running', 'idle', 'held', 'backing_off', 'halted', 'paused', 'clock_regression'))
);
COMMENT ON TABLE outbox.cursor_status IS 'What a relay has to say about its cursor: its halt and its last error. No turn locks it.';
COMMENT ON COLUMN outbox.cursor_status.cursor IS 'The cursor''s name.';
COMMENT ON COLUMN outbox.cursor_status.state IS 'The state when it was last written: halted, backing_off, clock_regression, or running after recovery.';
COMMENT ON COLUMN outbox.cursor_status.halted IS 'Whether the relay stands still until `outbox-relay cursor resume` or another configuration.';
COMMENT ON COLUMN outbox.cursor_status.fingerprint IS 'Digest of the configuration under which it was halted.';
COMMENT ON COLUMN outbox.cursor_status.message_id IS 'Id of the message concerned.';
COMMENT ON COLUMN outbox.cursor_status.last_error IS 'The last error: at, class (retry, poison, fatal), code, message, hint.';
COMMENT ON COLUMN outbox.cursor_status.updated_at IS 'When the row was last written.';

CREATE TABLE outbox.operation (
    id       bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at       timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    operator text        NOT NULL DEFAULT session_user,
    verb     text        NOT NULL,
    cursor   text,
    detail   jsonb
);
COMMENT ON TABLE outbox.operation IS 'Who did what with an operator verb.';
COMMENT ON COLUMN outbox.operation.id IS 'Number of the operation.';
COMMENT ON COLUMN outbox.operation.at IS 'When.';
COMMENT ON COLUMN outbox.operation.operator IS 'Who: database role, and the operating system''s user where known.';
COMMENT ON COLUMN outbox.operation.verb IS 'What: for example "cursor pause".';
COMMENT ON COLUMN outbox.operation.cursor IS 'The cursor concerned.';
COMMENT ON COLUMN outbox.operation.detail IS 'Further facts.';

CREATE FUNCTION outbox.stamp_created_at() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path = ''
AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        NEW.created_at := pg_catalog.clock_timestamp();
    ELSE
        NEW.created_at := OLD.created_at;
    END IF;
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION outbox.stamp_created_at() IS 'Trigger, BEFORE INSERT OR UPDATE OF created_at FOR EACH ROW, last by name: nobody can send a created_at of their own, which proves the horizon rule "writers".';

CREATE TABLE outbox.message (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    txid        xid8        NOT NULL DEFAULT pg_catalog.pg_current_xact_id(),
    created_at  timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    topic       text        NOT NULL,
    key         text,
    payload     text,
    headers     jsonb,
    traceparent text
);
CREATE INDEX message_created_at_id ON outbox.message (created_at, id);
CREATE TRIGGER zz_stamp_created_at BEFORE INSERT OR UPDATE OF created_at ON outbox.message
    FOR EACH ROW EXECUTE FUNCTION outbox.stamp_created_at();
COMMENT ON TABLE outbox.message IS 'A ready-made outbox: insert into it in the transaction that changes your own tables.';
COMMENT ON COLUMN outbox.message.id IS 'Id of the message, and tie-break of its order.';
COMMENT ON COLUMN outbox.message.txid IS 'The transaction that wrote it: lets a late-row audit find rows that became visible behind the cursor.';
COMMENT ON COLUMN outbox.message.created_at IS 'Its place in the order; set by the trigger, whatever is sent.';
COMMENT ON COLUMN outbox.message.topic IS 'Where it shall go.';
COMMENT ON COLUMN outbox.message.key IS 'Messages of the same key stay in order.';
COMMENT ON COLUMN outbox.message.payload IS 'What is published, as it is.';
COMMENT ON COLUMN outbox.message.headers IS 'Further headers.';
COMMENT ON COLUMN outbox.message.traceparent IS 'W3C trace context, passed on as a header.';

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

INSERT INTO outbox.version (version, oldest_binary) VALUES (1, 1);
