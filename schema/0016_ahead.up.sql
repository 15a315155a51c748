-- Version 16: rows of different lanes are sent side by side ([relay.turn] in_flight); those that were acknowledged beyond a cursor's
-- position are remembered here.

CREATE TABLE outbox.ahead (
    cursor     text        NOT NULL,
    created_at timestamptz NOT NULL,
    message_id text        NOT NULL,
    seek       bigint      NOT NULL,
    since      timestamptz NOT NULL,
    written_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    written_by text        NOT NULL,
    CONSTRAINT ahead_once PRIMARY KEY (cursor, created_at, message_id)
);
COMMENT ON TABLE outbox.ahead IS 'Rows beyond a cursor''s position that the receiver has acknowledged, while an earlier row of another lane has not been: they are passed without being sent again. Deleted as the position passes them.';
COMMENT ON COLUMN outbox.ahead.cursor IS 'The cursor. No foreign key: it would wait for a turn''s lock.';
COMMENT ON COLUMN outbox.ahead.created_at IS 'The row''s place in the order.';
COMMENT ON COLUMN outbox.ahead.message_id IS 'The row''s id as text.';
COMMENT ON COLUMN outbox.ahead.seek IS 'seek_applied of the cursor then: after a seek the row is sent again.';
COMMENT ON COLUMN outbox.ahead.since IS 'created_at of the cursor: another one of that name knows nothing of the row.';
COMMENT ON COLUMN outbox.ahead.written_at IS 'When it was written.';
COMMENT ON COLUMN outbox.ahead.written_by IS 'The replica that sent the row.';

CREATE FUNCTION outbox.follow_ahead() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        DELETE FROM outbox.ahead AS a WHERE a.cursor = OLD.name;
    ELSE
        DELETE FROM outbox.ahead AS a WHERE a.cursor = NEW.name;
        UPDATE outbox.ahead AS a SET cursor = NEW.name WHERE a.cursor = OLD.name;
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION outbox.follow_ahead() IS 'Deletes what is remembered of a cursor that is removed, and renames it with the cursor.';
REVOKE ALL ON FUNCTION outbox.follow_ahead() FROM PUBLIC;
CREATE TRIGGER delete_ahead AFTER DELETE ON outbox.cursor FOR EACH ROW EXECUTE FUNCTION outbox.follow_ahead();
CREATE TRIGGER rename_ahead AFTER UPDATE OF name ON outbox.cursor FOR EACH ROW
    WHEN (OLD.name IS DISTINCT FROM NEW.name) EXECUTE FUNCTION outbox.follow_ahead();

-- Roles that relays run as already may write it: an upgrade needs no second look at grants.
DO $$
DECLARE
    relay text;
BEGIN
    FOR relay IN
        SELECT DISTINCT g.grantee::pg_catalog.regrole::text
        FROM pg_catalog.pg_class AS c, pg_catalog.aclexplode(c.relacl) AS g
        WHERE c.oid = 'outbox.cursor'::pg_catalog.regclass AND g.privilege_type = 'UPDATE' AND g.grantee NOT IN (0, c.relowner)
    LOOP
        EXECUTE pg_catalog.format('GRANT SELECT, INSERT, UPDATE, DELETE ON outbox.ahead TO %s', relay);
    END LOOP;
END
$$;

INSERT INTO outbox.version (version, oldest_binary) VALUES (16, 1);
