-- Version 19: relays of tables without a column txid record what they have passed, slice by slice, so that rows that commit behind the
-- position are found.

ALTER TABLE outbox.cursor ADD COLUMN audit bytea;
COMMENT ON COLUMN outbox.cursor.audit IS 'The slice that is being recorded: between which places, how many rows, and sums over their ids; NULL: none. It ends at the position, or is over.';

-- A column that another has taken the name of is another order, whatever its type.
ALTER TABLE outbox.cursor ADD COLUMN position_columns smallint[];
COMMENT ON COLUMN outbox.cursor.position_columns IS 'The numbers of created_at and id in the table when the position was written; NULL: not known.';

CREATE TABLE outbox.audit_slice (
    id                bigint      GENERATED ALWAYS AS IDENTITY,
    cursor            text        NOT NULL,
    reads             bigint      NOT NULL,
    after_created_at  timestamptz NOT NULL,
    after_id          text,
    up_to_created_at  timestamptz NOT NULL,
    up_to_id          text,
    row_count         bigint      NOT NULL,
    sums              bytea       NOT NULL,
    ended_at          timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    checks            integer     NOT NULL DEFAULT 0,
    check_at          timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp() + interval '1 minute',
    CONSTRAINT audit_slice_key PRIMARY KEY (id)
);
COMMENT ON TABLE outbox.audit_slice IS 'What a cursor has passed between two places: compared with the table after a minute, after ten and after an hour, and then deleted.';
COMMENT ON COLUMN outbox.audit_slice.id IS 'Its number.';
COMMENT ON COLUMN outbox.audit_slice.cursor IS 'The cursor. No foreign key: it would wait for a turn''s lock.';
COMMENT ON COLUMN outbox.audit_slice.reads IS 'A hash of which table was read, by which columns, in which order and which shard: a relay of anything else does not compare it.';
COMMENT ON COLUMN outbox.audit_slice.after_created_at IS 'The rows after this place.';
COMMENT ON COLUMN outbox.audit_slice.after_id IS 'Its id as text; NULL: the rows from that instant on.';
COMMENT ON COLUMN outbox.audit_slice.up_to_created_at IS 'Up to this place.';
COMMENT ON COLUMN outbox.audit_slice.up_to_id IS 'Its id as text; NULL: the rows before that instant.';
COMMENT ON COLUMN outbox.audit_slice.row_count IS 'How many rows were passed.';
COMMENT ON COLUMN outbox.audit_slice.sums IS 'Power sums over their ids, by which up to nine ids that differ can be named.';
COMMENT ON COLUMN outbox.audit_slice.ended_at IS 'When the position had passed all of them.';
COMMENT ON COLUMN outbox.audit_slice.checks IS 'How often it has been compared.';
COMMENT ON COLUMN outbox.audit_slice.check_at IS 'When it is compared next; while a replica compares it, when another may.';
CREATE INDEX audit_slice_due ON outbox.audit_slice (check_at, id);
CREATE INDEX audit_slice_cursor ON outbox.audit_slice (cursor);

CREATE FUNCTION outbox.follow_audit() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        DELETE FROM outbox.audit_slice AS s WHERE s.cursor = OLD.name;
    ELSE
        DELETE FROM outbox.audit_slice AS s WHERE s.cursor = NEW.name;
        UPDATE outbox.audit_slice AS s SET cursor = NEW.name WHERE s.cursor = OLD.name;
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION outbox.follow_audit() IS 'Deletes the slices of a cursor that is removed, and renames them with the cursor.';
REVOKE ALL ON FUNCTION outbox.follow_audit() FROM PUBLIC;
CREATE TRIGGER delete_audit AFTER DELETE ON outbox.cursor FOR EACH ROW EXECUTE FUNCTION outbox.follow_audit();
CREATE TRIGGER rename_audit AFTER UPDATE OF name ON outbox.cursor FOR EACH ROW
    WHEN (OLD.name IS DISTINCT FROM NEW.name) EXECUTE FUNCTION outbox.follow_audit();

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
        EXECUTE pg_catalog.format('GRANT SELECT, INSERT, UPDATE, DELETE ON outbox.audit_slice TO %s', relay);
    END LOOP;
END
$$;

INSERT INTO outbox.version (version, oldest_binary) VALUES (19, 1);
