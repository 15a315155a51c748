-- Back to version 4. A partitioned outbox.message becomes the plain one again, its rows with it.
DO $$
DECLARE
    parts oid;
    next  bigint;
    g     record;
BEGIN
    PERFORM FROM outbox.cursor AS c WHERE c.identity ->> 'table' = 'outbox.message' ORDER BY c.name FOR UPDATE;
    IF EXISTS (SELECT FROM outbox.message_partition WHERE state <> 'attached') THEN
        RAISE EXCEPTION 'partitions of outbox.message are on their way out: run `outbox-relay prune` first';
    END IF;
    IF (SELECT c.relkind FROM pg_catalog.pg_class AS c WHERE c.oid = 'outbox.message'::regclass) = 'p' THEN
        LOCK TABLE outbox.message IN ACCESS EXCLUSIVE MODE;
        parts := 'outbox.message'::regclass;
        EXECUTE pg_catalog.format('SELECT last_value + is_called::integer FROM %s', pg_catalog.pg_get_serial_sequence('outbox.message', 'id')) INTO next;
        ALTER TABLE outbox.message RENAME TO message_parts;
        CREATE TABLE outbox.message (LIKE outbox.message_parts INCLUDING DEFAULTS INCLUDING IDENTITY INCLUDING COMMENTS,
                                     CONSTRAINT message_pkey PRIMARY KEY (id));
        EXECUTE pg_catalog.format('COMMENT ON TABLE outbox.message IS %L', pg_catalog.obj_description(parts, 'pg_class'));
        INSERT INTO outbox.message OVERRIDING SYSTEM VALUE SELECT * FROM outbox.message_parts;
        EXECUTE pg_catalog.format('ALTER TABLE outbox.message ALTER COLUMN id RESTART WITH %s', next);
        CREATE TRIGGER zz_stamp_created_at BEFORE INSERT OR UPDATE OF created_at ON outbox.message
            FOR EACH ROW EXECUTE FUNCTION outbox.stamp_created_at();
        FOR g IN
            SELECT a.privilege_type AS may, a.is_grantable, a.grantee, '' AS col
            FROM pg_catalog.pg_class AS c, pg_catalog.aclexplode(c.relacl) AS a WHERE c.oid = parts AND a.grantee <> c.relowner
            UNION ALL
            SELECT a.privilege_type, a.is_grantable, a.grantee, pg_catalog.format(' (%I)', t.attname)
            FROM pg_catalog.pg_attribute AS t, pg_catalog.aclexplode(t.attacl) AS a WHERE t.attrelid = parts AND NOT t.attisdropped
        LOOP
            EXECUTE pg_catalog.format('GRANT %s%s ON outbox.message TO %s%s', g.may, g.col,
                                      CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(g.grantee)) END,
                                      CASE WHEN g.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END);
        END LOOP;
        UPDATE outbox.cursor AS c SET relations = ARRAY['outbox.message'::regclass::oid, 'outbox.message'::regclass::oid]
        WHERE c.relations[1] = parts;
        DROP TABLE outbox.message_parts;
        CREATE INDEX message_created_at_id ON outbox.message (created_at, id);
    END IF;
END
$$;
DROP FUNCTION outbox.partition_messages(), outbox.prune_messages(interval), outbox.message_held(text, boolean),
    outbox.attach_messages(text), outbox.extend_messages(integer), outbox.message_lockers(oid[]), outbox.stamp_created_at_by_day();
DROP VIEW outbox.message_partition;
DROP VIEW outbox.safe_to_delete, outbox.hold;
DROP FUNCTION outbox.prune_requests(interval, integer), outbox.prune_dead_letters(interval, integer);
DROP INDEX outbox.dead_letter_resolved;
