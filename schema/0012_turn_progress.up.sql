-- Version 12: a turn says on its way how far its rows have been acknowledged, so that a replica that ends in the midst of a large
-- turn repeats few of them.

CREATE TABLE outbox.turn_progress (
    cursor              text        NOT NULL PRIMARY KEY,
    base                text        NOT NULL,
    position_created_at timestamptz NOT NULL,
    position_id         text        NOT NULL,
    rows                bigint      NOT NULL,
    observed_at         timestamptz NOT NULL,
    snapshot            pg_snapshot NOT NULL,
    relations           oid[]       NOT NULL,
    partitions          integer,
    rule                text,
    open_since          timestamptz,
    written_at          timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    written_by          text        NOT NULL
) WITH (fillfactor = 10, autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE outbox.turn_progress IS 'How far the rows of a turn that still runs have been acknowledged. Read by the next turn that locks the cursor, and only while the cursor''s row is the version that the turn locked.';
COMMENT ON COLUMN outbox.turn_progress.cursor IS 'The cursor. No foreign key: it would wait for the turn''s own lock.';
COMMENT ON COLUMN outbox.turn_progress.base IS 'The version of the cursor''s row that the turn has locked (its xmin and updated_at). Of any other version it says nothing.';
COMMENT ON COLUMN outbox.turn_progress.position_created_at IS 'created_at of the last row of the acknowledged prefix.';
COMMENT ON COLUMN outbox.turn_progress.position_id IS 'Its id as text.';
COMMENT ON COLUMN outbox.turn_progress.rows IS 'How many rows of the turn were acknowledged up to there.';
COMMENT ON COLUMN outbox.turn_progress.observed_at IS 'As in outbox.cursor, of the turn.';
COMMENT ON COLUMN outbox.turn_progress.snapshot IS 'The snapshot that the turn''s rows were read with.';
COMMENT ON COLUMN outbox.turn_progress.relations IS 'As in outbox.cursor, of the turn.';
COMMENT ON COLUMN outbox.turn_progress.partitions IS 'As in outbox.cursor; NULL leaves what is known there.';
COMMENT ON COLUMN outbox.turn_progress.rule IS 'As in outbox.cursor, of the turn.';
COMMENT ON COLUMN outbox.turn_progress.open_since IS 'As in outbox.cursor, of the turn.';
COMMENT ON COLUMN outbox.turn_progress.written_at IS 'When it was written.';
COMMENT ON COLUMN outbox.turn_progress.written_by IS 'The replica that runs the turn.';

CREATE FUNCTION outbox.drop_turn_progress() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    DELETE FROM outbox.turn_progress AS k WHERE k.cursor = OLD.name;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION outbox.drop_turn_progress() IS 'Deletes the recorded progress of a cursor that is removed or renamed.';
REVOKE ALL ON FUNCTION outbox.drop_turn_progress() FROM PUBLIC;
CREATE TRIGGER drop_turn_progress AFTER DELETE OR UPDATE OF name ON outbox.cursor
    FOR EACH ROW EXECUTE FUNCTION outbox.drop_turn_progress();

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
        EXECUTE pg_catalog.format('GRANT SELECT, INSERT, UPDATE ON outbox.turn_progress TO %s', relay);
    END LOOP;
END
$$;

INSERT INTO outbox.version (version, oldest_binary) VALUES (12, 1);
