-- Version 15: the ready-made outbox keeps the index by which late rows are found when it gets its partitions, and rows that a dump has
-- restored hold no day.

CREATE FUNCTION outbox.message_looked_through(relation oid) RETURNS boolean
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT EXISTS (SELECT FROM pg_catalog.pg_index AS i WHERE i.indrelid = relation AND i.indisvalid
                   AND pg_catalog.pg_get_indexdef(i.indexrelid) LIKE '% USING btree (txid, created_at, id)')
        OR (SELECT pg_catalog.sum(pg_catalog.pg_relation_size(t.relid)) < 64 * 1024 * 1024 FROM pg_catalog.pg_partition_tree(relation) AS t)
            IS NOT FALSE AND pg_catalog.pg_relation_size(relation) < 64 * 1024 * 1024
$$;
COMMENT ON FUNCTION outbox.message_looked_through(oid) IS 'Whether this table has the index by which late rows are found, or is so small that one is soon built.';
REVOKE ALL ON FUNCTION outbox.message_looked_through(oid) FROM PUBLIC;

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
    looked boolean;
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
    -- The index by which late rows are found. A large table that has none would be locked for as long as it is built: there
    -- `outbox-relay check` asks for it.
    looked := outbox.message_looked_through(plain);
    IF pg_catalog.to_regclass('outbox.message_txid') IS NOT NULL THEN
        EXECUTE pg_catalog.format('ALTER INDEX outbox.message_txid RENAME TO %I', before || '_txid');
    END IF;
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
    IF looked THEN
        CREATE INDEX message_txid ON outbox.message (txid, created_at, id);
    END IF;
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

CREATE OR REPLACE FUNCTION outbox.message_held(name text, thorough boolean) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET timezone = 'UTC'
AS $$
DECLARE
    p     record;
    h     record;
    there boolean;
BEGIN
    SELECT m.* INTO STRICT p FROM outbox.message_partition AS m WHERE m.name = message_held.name;
    IF NOT EXISTS (SELECT FROM outbox.hold AS o WHERE o.relation = 'outbox.message'::regclass) THEN
        RETURN 'no cursor has ever read outbox.message';
    END IF;
    FOR h IN SELECT o.* FROM outbox.hold AS o WHERE o.relation = 'outbox.message'::regclass AND o.created_at < p.upper LOOP
        IF h.kind = 'dead_letter' THEN
            there := EXISTS (SELECT FROM outbox.dead_letter AS d WHERE d.cursor = h.cursor AND d.state IN ('dead', 'redriving')
                             AND d.created_at >= p.lower AND d.created_at < p.upper);
        ELSIF h.kind = 'parked' THEN
            there := EXISTS (SELECT FROM outbox.parked AS w WHERE w.cursor = h.cursor AND w.fields = '{}'
                             AND w.created_at >= p.lower AND w.created_at < p.upper);
        ELSIF h.kind = 'unknown' THEN
            there := EXISTS (SELECT FROM outbox.claim AS c WHERE c.relay = h.cursor AND c.state = 'unknown'
                             AND c.due_at >= p.lower AND c.due_at < p.upper);
        ELSE
            -- A cursor that rests at the last row of its partition has passed it.
            EXECUTE pg_catalog.format('SELECT EXISTS (SELECT FROM outbox.%I WHERE created_at >= $1 AND ($2 IS NULL OR (created_at, id) > ($1, $2)))', p.name)
            INTO there USING h.created_at, h.id::bigint;
        END IF;
        IF there THEN
            RETURN h.held_by;
        END IF;
    END LOOP;
    IF thorough THEN
        -- What the last read of a cursor could not see has come below its position afterwards.
        FOR h IN SELECT c.name, c.snapshot FROM outbox.cursor AS c
                 WHERE c.relations[1] = 'outbox.message'::regclass AND c.snapshot IS NOT NULL LOOP
            -- But a row that a dump has restored keeps another server's number, which its own xmin is smaller than.
            EXECUTE pg_catalog.format('SELECT EXISTS (SELECT FROM outbox.%I AS m CROSS JOIN '
                                      '(SELECT pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot())::text::bigint AS next) AS n '
                                      'WHERE (m.txid >= $1 OR m.txid = ANY ($2)) '
                                      'AND n.next - ((n.next - m.xmin::text::bigint) & 4294967295) >= m.txid::text::bigint)', p.name)
            INTO there USING pg_catalog.pg_snapshot_xmax(h.snapshot), ARRAY(SELECT pg_catalog.pg_snapshot_xip(h.snapshot));
            IF there THEN
                RETURN pg_catalog.format('rows that cursor %s could not see at its last read', h.name);
            END IF;
        END LOOP;
    END IF;
    RETURN NULL;
END
$$;

-- A table that got its partitions between the two versions.
DO $$
BEGIN
    IF (SELECT c.relkind FROM pg_catalog.pg_class AS c WHERE c.oid = 'outbox.message'::regclass) = 'p'
       AND NOT EXISTS (SELECT FROM pg_catalog.pg_index AS i WHERE i.indrelid = 'outbox.message'::regclass
                       AND pg_catalog.pg_get_indexdef(i.indexrelid) LIKE '% (txid, created_at, id)')
       AND outbox.message_looked_through('outbox.message'::regclass) THEN
        IF pg_catalog.to_regclass('outbox.message_txid') IS NOT NULL THEN
            ALTER INDEX outbox.message_txid RENAME TO message_before_txid;
        END IF;
        CREATE INDEX message_txid ON outbox.message (txid, created_at, id);
    END IF;
END
$$;

INSERT INTO outbox.version (version, oldest_binary) VALUES (15, 1);
