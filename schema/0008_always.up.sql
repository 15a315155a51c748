-- Version 8: the stamp of outbox.message also under session_replication_role = replica, and a trigger that keeps shard keys.
-- Only expands: programs built for versions 1 to 7 go on.

CREATE FUNCTION outbox.refuse_key_update() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    old_key text;
    new_key text;
BEGIN
    EXECUTE pg_catalog.format('SELECT ($1).%1$I::text, ($2).%1$I::text', TG_ARGV[0]) INTO old_key, new_key USING OLD, NEW;
    -- Byte by byte, as shards are told apart, whatever the column's own collation takes for equal.
    IF old_key COLLATE "C" IS DISTINCT FROM new_key COLLATE "C" THEN
        RAISE EXCEPTION '% of %.% cannot be updated: a relay reads this table by shards of it', TG_ARGV[0], TG_TABLE_SCHEMA, TG_TABLE_NAME
            USING ERRCODE = 'restrict_violation', HINT = 'Insert a new row with the other key.';
    END IF;
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION outbox.refuse_key_update() IS 'Trigger with a column''s name as its argument, BEFORE UPDATE OF that column FOR EACH ROW, ENABLE ALWAYS, last by name: refuses to change it. A relay with shards loses or repeats a row whose shard key changes.';
COMMENT ON FUNCTION outbox.stamp_created_at() IS 'Trigger, BEFORE INSERT OR UPDATE OF created_at FOR EACH ROW, ENABLE ALWAYS, last by name: no writer can send a created_at of their own, which proves the horizon rule "writers".';

CREATE OR REPLACE FUNCTION outbox.partition_messages() RETURNS text
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET datestyle = 'ISO, YMD'
AS $$
DECLARE
    plain  CONSTANT oid  := 'outbox.message'::regclass;
    today  CONSTANT date := (pg_catalog.clock_timestamp())::date;
    until  CONSTANT date := today + 2;
    before CONSTANT text := 'message_before_' || pg_catalog.to_char(until, 'YYYYMMDD');
    used   boolean;
    next   bigint;
    owner  name;
    g      record;
BEGIN
    IF (SELECT c.relkind FROM pg_catalog.pg_class AS c WHERE c.oid = plain) <> 'r' THEN
        RETURN NULL;
    END IF;
    -- Turns that are under way end first, and no new one begins.
    PERFORM FROM outbox.cursor AS c WHERE c.relations[1] = plain OR c.identity ->> 'table' = 'outbox.message' ORDER BY c.name FOR UPDATE;
    LOCK TABLE outbox.message IN ACCESS EXCLUSIVE MODE;
    IF (SELECT pg_catalog.count(*) FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = plain AND a.attnum > 0 AND NOT a.attisdropped) <> 8
       OR EXISTS (SELECT FROM pg_catalog.pg_trigger AS t WHERE t.tgrelid = plain AND t.tgname <> 'zz_stamp_created_at')
       OR EXISTS (SELECT FROM pg_catalog.pg_depend AS d WHERE d.refobjid = plain AND d.classid = 'pg_catalog.pg_rewrite'::regclass)
       OR EXISTS (SELECT FROM pg_catalog.pg_publication_rel AS r WHERE r.prrelid = plain)
       OR EXISTS (SELECT FROM pg_catalog.pg_inherits AS i WHERE plain IN (i.inhrelid, i.inhparent))
       OR (SELECT c.relrowsecurity FROM pg_catalog.pg_class AS c WHERE c.oid = plain) THEN
        RAISE EXCEPTION 'outbox.message has columns, triggers, views, publications, policies or children of its own'
            USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Remove them, and create them again on the partitioned table.';
    END IF;
    used := EXISTS (SELECT FROM outbox.message);
    EXECUTE pg_catalog.format('SELECT last_value + is_called::integer FROM %s', pg_catalog.pg_get_serial_sequence('outbox.message', 'id')) INTO next;
    SELECT pg_catalog.pg_get_userbyid(c.relowner) INTO owner FROM pg_catalog.pg_class AS c WHERE c.oid = plain;
    EXECUTE pg_catalog.format('ALTER TABLE outbox.message RENAME TO %I', before);
    EXECUTE pg_catalog.format('CREATE TABLE outbox.message (LIKE outbox.%I INCLUDING DEFAULTS INCLUDING IDENTITY INCLUDING COMMENTS, '
                              'CONSTRAINT message_by_day PRIMARY KEY (created_at, id)) PARTITION BY RANGE (created_at)', before);
    EXECUTE pg_catalog.format('COMMENT ON TABLE outbox.message IS %L', pg_catalog.obj_description(plain, 'pg_class'));
    EXECUTE pg_catalog.format('ALTER TABLE outbox.message ALTER COLUMN id RESTART WITH %s', next);
    CREATE TRIGGER zz_stamp_created_at BEFORE INSERT OR UPDATE OF created_at ON outbox.message
        FOR EACH ROW EXECUTE FUNCTION outbox.stamp_created_at_by_day();
    -- Partitions have the state of their parent's trigger.
    ALTER TABLE outbox.message ENABLE ALWAYS TRIGGER zz_stamp_created_at;
    FOR g IN
        SELECT a.privilege_type AS may, a.is_grantable, a.grantee, '' AS col
        FROM pg_catalog.pg_class AS c, pg_catalog.aclexplode(c.relacl) AS a WHERE c.oid = plain AND a.grantee <> c.relowner
        UNION ALL
        SELECT a.privilege_type, a.is_grantable, a.grantee, pg_catalog.format(' (%I)', t.attname)
        FROM pg_catalog.pg_attribute AS t, pg_catalog.aclexplode(t.attacl) AS a WHERE t.attrelid = plain AND NOT t.attisdropped
    LOOP
        EXECUTE pg_catalog.format('GRANT %s%s ON outbox.message TO %s%s', g.may, g.col,
                                  CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(g.grantee)) END,
                                  CASE WHEN g.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END);
    END LOOP;
    IF used THEN
        EXECUTE pg_catalog.format('DROP TRIGGER zz_stamp_created_at ON outbox.%I', before);
        EXECUTE pg_catalog.format('ALTER TABLE outbox.%I ALTER COLUMN id DROP IDENTITY, DROP CONSTRAINT message_pkey', before);
        IF pg_catalog.to_regclass('outbox.message_unique') IS NOT NULL THEN
            EXECUTE pg_catalog.format('ALTER TABLE outbox.%I ADD PRIMARY KEY USING INDEX message_unique', before);
        END IF;
        DROP INDEX outbox.message_created_at_id;
        EXECUTE pg_catalog.format('ALTER TABLE outbox.message ATTACH PARTITION outbox.%I FOR VALUES FROM (MINVALUE) TO (%L)', before, until);
    ELSE
        EXECUTE pg_catalog.format('DROP TABLE outbox.%I', before);
    END IF;
    EXECUTE pg_catalog.format('CREATE TABLE outbox.message_rest PARTITION OF outbox.message FOR VALUES FROM (%L) TO (MAXVALUE)',
                              CASE WHEN used THEN until ELSE today END);
    EXECUTE pg_catalog.format('ALTER TABLE outbox.message OWNER TO %I', owner);
    EXECUTE pg_catalog.format('ALTER TABLE outbox.message_rest OWNER TO %I', owner);
    PERFORM outbox.extend_messages(3);
    -- It is the same table to those who read it: position and rows are what they were.
    UPDATE outbox.cursor AS c SET updated_at = pg_catalog.clock_timestamp(),
        relations = ARRAY['outbox.message'::regclass::oid, 'outbox.message'::regclass::oid]
                    || ARRAY(SELECT p.relation FROM outbox.message_partition AS p WHERE p.state = 'attached')
    WHERE c.relations[1] = plain;
    RETURN CASE WHEN used THEN before ELSE 'empty' END;
END
$$;

-- A trigger that was disabled is left as it is.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_catalog.pg_trigger AS t
               WHERE t.tgrelid = 'outbox.message'::regclass AND t.tgname = 'zz_stamp_created_at' AND t.tgenabled = 'O') THEN
        ALTER TABLE outbox.message ENABLE ALWAYS TRIGGER zz_stamp_created_at;
    END IF;
END
$$;

INSERT INTO outbox.version (version, oldest_binary) VALUES (8, 1);
