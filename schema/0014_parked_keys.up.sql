-- Version 14: a message that is never accepted parks its key (on_poison = "park_key"); the rows of that key wait behind it, in
-- order, and all others go on.

CREATE TABLE outbox.parked_key (
    cursor    text        NOT NULL,
    key       text        NOT NULL,
    letter    bigint      NOT NULL,
    since     timestamptz NOT NULL,
    since_id  text        NOT NULL,
    rows      bigint      NOT NULL DEFAULT 0,
    released  boolean     NOT NULL DEFAULT false,
    parked_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    parked_by text        NOT NULL,
    CONSTRAINT parked_key_once PRIMARY KEY (cursor, key)
) WITH (fillfactor = 50);
CREATE INDEX parked_key_letter ON outbox.parked_key (letter);
-- Every look of a replica asks whether there is one.
CREATE INDEX parked_key_released ON outbox.parked_key (cursor) WHERE released;
COMMENT ON TABLE outbox.parked_key IS 'Keys that are parked: while a key stands here, none of its rows is sent but those that are sent again from outbox.parked.';
COMMENT ON COLUMN outbox.parked_key.cursor IS 'The cursor. No foreign key: it would wait for a turn''s lock.';
COMMENT ON COLUMN outbox.parked_key.key IS 'The key, as text.';
COMMENT ON COLUMN outbox.parked_key.letter IS 'The dead letter that all rows of the key wait for, or waited for last.';
COMMENT ON COLUMN outbox.parked_key.since IS 'The place of that dead letter''s row: a seek may lead back before it, and rows before it do not wait.';
COMMENT ON COLUMN outbox.parked_key.since_id IS 'The id of that row as text.';
COMMENT ON COLUMN outbox.parked_key.rows IS 'How many rows of the key stand in outbox.parked.';
COMMENT ON COLUMN outbox.parked_key.released IS 'The dead letter was accepted or discarded: the next turns send the key''s rows. Until none is left, new ones line up behind them.';
COMMENT ON COLUMN outbox.parked_key.parked_at IS 'When the key was parked.';
COMMENT ON COLUMN outbox.parked_key.parked_by IS 'The replica that did.';

CREATE TABLE outbox.parked (
    seq          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    cursor       text        NOT NULL,
    key          text        NOT NULL,
    letter       bigint,
    source       text        NOT NULL,
    created_at   timestamptz NOT NULL,
    message_id   text        NOT NULL,
    fields       text[]      NOT NULL,
    field_values bytea[]     NOT NULL,
    bytes        bigint      NOT NULL,
    parked_at    timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    parked_by    text        NOT NULL,
    CONSTRAINT parked_once UNIQUE (cursor, created_at, message_id)
);
CREATE INDEX parked_in_order ON outbox.parked (cursor, key, created_at, seq);
CREATE INDEX parked_letter ON outbox.parked (letter) WHERE letter IS NOT NULL;
COMMENT ON TABLE outbox.parked IS 'Rows of keys that are parked, whole, written in the transaction that advanced over them: first the one that was refused, then all that came later.';
COMMENT ON COLUMN outbox.parked.seq IS 'The order of rows of one instant.';
COMMENT ON COLUMN outbox.parked.cursor IS 'The cursor that advanced over the row.';
COMMENT ON COLUMN outbox.parked.key IS 'Its key.';
COMMENT ON COLUMN outbox.parked.letter IS 'Its dead letter, if it is the row that was refused; NULL: it waits behind that one.';
COMMENT ON COLUMN outbox.parked.source IS 'The table that the row stands in.';
COMMENT ON COLUMN outbox.parked.created_at IS 'The row''s place in the order.';
COMMENT ON COLUMN outbox.parked.message_id IS 'The row''s id as text.';
COMMENT ON COLUMN outbox.parked.fields IS 'What was read of the row: one word for each field.';
COMMENT ON COLUMN outbox.parked.field_values IS 'The values read.';
COMMENT ON COLUMN outbox.parked.bytes IS 'How many bytes they take.';
COMMENT ON COLUMN outbox.parked.parked_at IS 'When the row was parked.';
COMMENT ON COLUMN outbox.parked.parked_by IS 'The replica that did.';

-- Any program or statement that ends dead letters releases the keys behind them. All that change several keys
-- lock them in this order.
CREATE FUNCTION outbox.release_parked_keys() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    letters bigint[];
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        letters := ARRAY(SELECT k.letter FROM outbox.parked_key AS k WHERE NOT k.released);
    ELSIF TG_OP = 'DELETE' THEN
        letters := ARRAY(SELECT o.id FROM olds AS o WHERE o.state IN ('dead', 'redriving'));
    ELSE
        letters := ARRAY(SELECT o.id FROM olds AS o JOIN news AS n ON n.id = o.id
            WHERE o.state IN ('dead', 'redriving') AND n.state IN ('redriven', 'discarded'));
    END IF;
    PERFORM FROM outbox.parked_key AS k WHERE k.letter = ANY (letters) ORDER BY k.cursor, k.key FOR UPDATE;
    IF FOUND THEN
        WITH gone AS (DELETE FROM outbox.parked AS p WHERE p.letter = ANY (letters) RETURNING p.cursor, p.key)
        UPDATE outbox.parked_key AS k SET released = true,
            rows = k.rows - (SELECT count(*) FROM gone AS g WHERE g.cursor = k.cursor AND g.key = k.key)
        WHERE k.letter = ANY (letters);
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION outbox.release_parked_keys() IS 'Releases the keys that wait for dead letters which were accepted or discarded.';
REVOKE ALL ON FUNCTION outbox.release_parked_keys() FROM PUBLIC;
CREATE TRIGGER release_parked_keys AFTER UPDATE ON outbox.dead_letter REFERENCING OLD TABLE AS olds NEW TABLE AS news
    FOR EACH STATEMENT EXECUTE FUNCTION outbox.release_parked_keys();
CREATE TRIGGER release_parked_keys_of_deleted AFTER DELETE ON outbox.dead_letter REFERENCING OLD TABLE AS olds
    FOR EACH STATEMENT EXECUTE FUNCTION outbox.release_parked_keys();
CREATE TRIGGER release_all_parked_keys AFTER TRUNCATE ON outbox.dead_letter
    FOR EACH STATEMENT EXECUTE FUNCTION outbox.release_parked_keys();

-- A cursor that is renamed takes its parked rows along; one that has some cannot be removed, nor divided among others.
CREATE FUNCTION outbox.keep_parked_keys() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    keys bigint;
BEGIN
    IF TG_OP = 'DELETE' THEN
        SELECT count(*) INTO keys FROM outbox.parked_key AS k WHERE k.cursor = OLD.name;
        IF keys > 0 THEN
            RAISE EXCEPTION 'cursor % has % parked keys', OLD.name, keys USING ERRCODE = 'object_not_in_prerequisite_state',
                HINT = format('Their rows have not been sent. `outbox-relay dead-letter list --cursor %s` names what they wait for: redrive or discard it, and let the relay send them first.', OLD.name);
        END IF;
        RETURN OLD;
    END IF;
    UPDATE outbox.parked_key AS k SET cursor = NEW.name WHERE k.cursor = OLD.name;
    UPDATE outbox.parked AS p SET cursor = NEW.name WHERE p.cursor = OLD.name;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION outbox.keep_parked_keys() IS 'Renames the parked rows of a cursor with it, and keeps a cursor that has some.';
REVOKE ALL ON FUNCTION outbox.keep_parked_keys() FROM PUBLIC;
CREATE TRIGGER keep_parked_keys BEFORE DELETE ON outbox.cursor FOR EACH ROW EXECUTE FUNCTION outbox.keep_parked_keys();
CREATE TRIGGER rename_parked_keys AFTER UPDATE OF name ON outbox.cursor FOR EACH ROW
    WHEN (OLD.name IS DISTINCT FROM NEW.name) EXECUTE FUNCTION outbox.keep_parked_keys();

-- A parked row that could not be read is read again when its key is released: until then it must be there.
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
FROM stands AS s WHERE pg_catalog.jsonb_typeof(s.token -> 'rows') = 'array' AND s.token -> 'rows' <> '[]'
UNION ALL
SELECT s.relation, s.name, 'parked', w.created_at, NULL, pg_catalog.format('%s parked rows of cursor %s that could not be read', w.rows, s.name)
FROM stands AS s
JOIN (SELECT cursor, pg_catalog.min(created_at) AS created_at, pg_catalog.count(*) AS rows
      FROM outbox.parked WHERE fields = '{}' GROUP BY cursor) AS w ON w.cursor = s.name;
COMMENT ON COLUMN outbox.hold.kind IS 'cursor: its position. wish: where an operator wants it. dead_letter, unknown: the oldest of them. parked: the oldest parked row that is to be read again. in_flight: under at_most_once.';

-- Roles that relays run as already may write them: an upgrade needs no second look at grants.
DO $$
DECLARE
    relay text;
BEGIN
    FOR relay IN
        SELECT DISTINCT g.grantee::pg_catalog.regrole::text
        FROM pg_catalog.pg_class AS c, pg_catalog.aclexplode(c.relacl) AS g
        WHERE c.oid = 'outbox.cursor'::pg_catalog.regclass AND g.privilege_type = 'UPDATE' AND g.grantee NOT IN (0, c.relowner)
    LOOP
        EXECUTE pg_catalog.format('GRANT SELECT, INSERT, UPDATE, DELETE ON outbox.parked_key, outbox.parked TO %s', relay);
    END LOOP;
END
$$;

INSERT INTO outbox.version (version, oldest_binary) VALUES (14, 1);
