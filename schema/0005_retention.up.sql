-- Retention: what is done with may be taken away. The rules stand in functions that run as the owner, so that the relay's
-- role deletes nothing else. Only expands: programs built for versions 1 to 4 go on.

-- A pass begins with what has been done with for the longest time.
CREATE INDEX dead_letter_resolved ON outbox.dead_letter (resolved_at) WHERE state IN ('redriven', 'discarded');

CREATE FUNCTION outbox.prune_requests(older_than interval, most integer) RETURNS integer
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    WITH old AS (
        SELECT r.request_id FROM outbox.request AS r
        WHERE r.status = 'completed'
          AND r.completed_at < pg_catalog.statement_timestamp() - GREATEST(older_than, interval '0')
          -- As the index has it; a request whose key holds for ever is not in there, and costs nothing.
          AND (r.dedupe_key IS NULL OR r.dedupe_until IS NOT NULL)
          AND COALESCE(r.dedupe_until < pg_catalog.statement_timestamp(), true)
        ORDER BY r.completed_at LIMIT most FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM outbox.request AS r USING old WHERE r.request_id = old.request_id RETURNING 1
    )
    SELECT pg_catalog.count(*)::integer FROM gone
$$ STRICT;
COMMENT ON FUNCTION outbox.prune_requests(interval, integer) IS 'Deletes completed requests older than this, at most so many, oldest first: never before dedupe_until has passed, and never one whose dedupe_key holds for ever. Gives their number.';

CREATE FUNCTION outbox.prune_dead_letters(older_than interval, most integer) RETURNS integer
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    WITH old AS (
        SELECT d.id FROM outbox.dead_letter AS d
        WHERE d.state IN ('redriven', 'discarded')
          AND d.resolved_at < pg_catalog.statement_timestamp() - GREATEST(older_than, interval '0')
        ORDER BY d.resolved_at LIMIT most FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM outbox.dead_letter AS d USING old WHERE d.id = old.id RETURNING 1
    )
    SELECT pg_catalog.count(*)::integer FROM gone
$$ STRICT;
COMMENT ON FUNCTION outbox.prune_dead_letters(interval, integer) IS 'Deletes dead letters that were redriven or discarded longer ago than this, at most so many, oldest first. Gives their number.';

REVOKE ALL ON FUNCTION outbox.prune_requests(interval, integer), outbox.prune_dead_letters(interval, integer) FROM PUBLIC;

CREATE VIEW outbox.hold AS
WITH stands AS (
    SELECT t.oid AS relation, c.*, COALESCE(k.paused, false) AS paused, COALESCE(s.halted, false) AS halted,
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
FROM stands AS s WHERE pg_catalog.jsonb_typeof(s.token -> 'rows') = 'array' AND s.token -> 'rows' <> '[]';
COMMENT ON VIEW outbox.hold IS 'What keeps rows of a table that streams are read from: everything from created_at on. Due work and requests are not here: their rows say by themselves whether they were sent.';
COMMENT ON COLUMN outbox.hold.relation IS 'The table''s oid.';
COMMENT ON COLUMN outbox.hold.cursor IS 'The cursor, whether or not a configuration knows its relay.';
COMMENT ON COLUMN outbox.hold.kind IS 'cursor: its position. wish: where an operator wants it. dead_letter, unknown: the oldest of them. in_flight: under at_most_once.';
COMMENT ON COLUMN outbox.hold.created_at IS 'Rows before it are not held by this; -infinity holds every row.';
COMMENT ON COLUMN outbox.hold.id IS 'Of a position, its id: the rows of that instant up to it have been passed.';
COMMENT ON COLUMN outbox.hold.held_by IS 'In words.';

CREATE VIEW outbox.safe_to_delete AS
SELECT n.nspname AS schema, t.relname AS name, l.relays, l.created_at,
       CASE WHEN pg_catalog.count(h.id) = pg_catalog.count(*) AND pg_catalog.min(h.id) = pg_catalog.max(h.id) THEN pg_catalog.min(h.id) END AS id,
       pg_catalog.string_agg(h.held_by, '; ' ORDER BY h.held_by) AS held_by
FROM (SELECT relation, pg_catalog.array_agg(DISTINCT cursor ORDER BY cursor) AS relays, pg_catalog.min(created_at) AS created_at
      FROM outbox.hold GROUP BY relation) AS l
JOIN outbox.hold AS h ON h.relation = l.relation AND h.created_at = l.created_at
JOIN pg_catalog.pg_class AS t ON t.oid = l.relation
JOIN pg_catalog.pg_namespace AS n ON n.oid = t.relnamespace
GROUP BY n.nspname, t.relname, l.relays, l.created_at;
COMMENT ON VIEW outbox.safe_to_delete IS 'For each table that streams are read from: rows before created_at have been passed by every cursor, and no open dead letter, unknown outcome or wish to move back needs them. A table without a cursor is not here.';
COMMENT ON COLUMN outbox.safe_to_delete.schema IS 'The table''s schema.';
COMMENT ON COLUMN outbox.safe_to_delete.name IS 'The table.';
COMMENT ON COLUMN outbox.safe_to_delete.relays IS 'The cursors on it.';
COMMENT ON COLUMN outbox.safe_to_delete.created_at IS 'Rows before it may be deleted; -infinity: none.';
COMMENT ON COLUMN outbox.safe_to_delete.id IS 'Where one position alone is the bound, its id.';
COMMENT ON COLUMN outbox.safe_to_delete.held_by IS 'Who holds the rows from there on.';

-- outbox.message, a partition for each day (UTC) of created_at.

CREATE FUNCTION outbox.stamp_created_at_by_day() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    epoch   CONSTANT timestamptz := '2000-01-01 00:00:00+00';
    stamped CONSTANT timestamptz := pg_catalog.clock_timestamp();
    ends    timestamptz;
BEGIN
    IF TG_OP <> 'INSERT' THEN
        NEW.created_at := OLD.created_at;
        RETURN NEW;
    END IF;
    -- The row has its partition already, by the value that it came with; bounds of partitions are bounds of days.
    IF pg_catalog.date_bin('1 day', NEW.created_at, epoch) = pg_catalog.date_bin('1 day', stamped, epoch) THEN
        NEW.created_at := stamped;
        RETURN NEW;
    END IF;
    -- The day has ended on the way from the default to here. The latency window covers the difference.
    ends := pg_catalog.date_bin('1 day', NEW.created_at, epoch) + interval '24 hours';
    IF stamped >= ends AND stamped < ends + interval '1 millisecond' THEN
        NEW.created_at := ends - interval '1 microsecond';
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'created_at % is another day than now, %', NEW.created_at, stamped
        USING ERRCODE = 'serialization_failure',
              HINT = 'Leave created_at out: it is set here. If it was left out, the day has ended under this statement: try the transaction again.';
END
$$;
COMMENT ON FUNCTION outbox.stamp_created_at_by_day() IS 'The same as outbox.stamp_created_at for tables that are partitioned by days (UTC) of created_at: a value that came with the row chooses no partition but today''s.';

CREATE VIEW outbox.message_partition AS
SELECT c.oid AS relation, c.relname AS name,
       CASE WHEN n.part IS NULL
            -- The rest begins where its bound says; all others have their days in their names.
            THEN COALESCE(pg_catalog.substring(pg_catalog.pg_get_expr(c.relpartbound, c.oid), 'FROM \(''([^'']+)''')::timestamptz, '-infinity')
            WHEN n.part[1] = 'before' THEN '-infinity'
            ELSE n.part[1]::date::timestamp AT TIME ZONE 'UTC' END AS lower,
       CASE WHEN n.part IS NULL THEN 'infinity'
            ELSE COALESCE(n.part[2]::date, n.part[1]::date + 1)::timestamp AT TIME ZONE 'UTC' END AS upper,
       CASE WHEN i.inhrelid IS NULL THEN 'detached' WHEN i.inhdetachpending THEN 'detaching' ELSE 'attached' END AS state
FROM pg_catalog.pg_class AS c
CROSS JOIN LATERAL (SELECT pg_catalog.regexp_match(c.relname, '^message_(before(?=_)|[0-9]{8})(?:_([0-9]{8}))?$') AS part) AS n
LEFT JOIN pg_catalog.pg_inherits AS i ON i.inhrelid = c.oid
-- The pattern names a range of an index: each turn on outbox.message asks this.
WHERE c.relname LIKE 'message\_%' AND c.relnamespace = (SELECT s.oid FROM pg_catalog.pg_namespace AS s WHERE s.nspname = 'outbox')
  AND c.relkind = 'r' AND (n.part IS NOT NULL OR c.relname = 'message_rest');
COMMENT ON VIEW outbox.message_partition IS 'The partitions of outbox.message, those included that are on their way out. message_rest takes what comes after the days that are made.';
COMMENT ON COLUMN outbox.message_partition.relation IS 'Its oid.';
COMMENT ON COLUMN outbox.message_partition.name IS 'Its name in the schema outbox; it says which days, in UTC.';
COMMENT ON COLUMN outbox.message_partition.lower IS 'Its first instant.';
COMMENT ON COLUMN outbox.message_partition.upper IS 'The instant behind its last.';
COMMENT ON COLUMN outbox.message_partition.state IS 'attached; detaching: DETACH CONCURRENTLY was begun and waits to be finished; detached: waits to be dropped.';

CREATE FUNCTION outbox.message_lockers(tables oid[]) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT COALESCE(pg_catalog.string_agg(DISTINCT COALESCE(pg_catalog.format('pid %s (%s)', l.pid, a.application_name), 'a prepared transaction'), ', '), 'somebody')
    FROM pg_catalog.pg_locks AS l LEFT JOIN pg_catalog.pg_stat_activity AS a ON a.pid = l.pid
    WHERE l.locktype = 'relation' AND l.relation = ANY (tables) AND l.granted AND l.pid IS DISTINCT FROM pg_catalog.pg_backend_pid()
      AND l.database = (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = pg_catalog.current_database())
$$;
COMMENT ON FUNCTION outbox.message_lockers(oid[]) IS 'Who has locks on these tables.';

CREATE FUNCTION outbox.extend_messages(ahead integer) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET datestyle = 'ISO, YMD' SET lock_timeout = '200ms'
AS $$
DECLARE
    today  CONSTANT date := (pg_catalog.clock_timestamp())::date;
    wanted CONSTANT date := today + LEAST(GREATEST(ahead, 1), 31) + 1;
    begins date;
    used   boolean;
    made   text[] := '{}';
    part   text;
BEGIN
    SELECT p.lower::date INTO begins FROM outbox.message_partition AS p WHERE p.name = 'message_rest' AND p.state = 'attached';
    IF begins IS NULL OR begins >= wanted THEN
        RETURN NULL;
    END IF;
    LOCK TABLE outbox.message IN ACCESS EXCLUSIVE MODE;
    -- Another replica may have been quicker.
    SELECT p.lower::date INTO begins FROM outbox.message_partition AS p WHERE p.name = 'message_rest' AND p.state = 'attached';
    IF begins IS NULL OR begins >= wanted THEN
        RETURN NULL;
    END IF;
    SELECT EXISTS (SELECT FROM outbox.message_rest) INTO used;
    ALTER TABLE outbox.message DETACH PARTITION outbox.message_rest;
    IF used THEN
        -- Nobody made days for so long that rows came into the rest: it becomes the partition of these days and the next.
        part := pg_catalog.format('message_%s_%s', pg_catalog.to_char(begins, 'YYYYMMDD'), pg_catalog.to_char(wanted, 'YYYYMMDD'));
        EXECUTE pg_catalog.format('ALTER TABLE outbox.message_rest RENAME TO %I', part);
        EXECUTE pg_catalog.format('ALTER TABLE outbox.message ATTACH PARTITION outbox.%I FOR VALUES FROM (%L) TO (%L)', part, begins, wanted);
        EXECUTE pg_catalog.format('CREATE TABLE outbox.message_rest PARTITION OF outbox.message FOR VALUES FROM (%L) TO (MAXVALUE)', wanted);
        made := ARRAY[part];
    ELSE
        -- Days that are over before they are made stay without a partition: nothing can come into them.
        FOR day IN 0 .. wanted - GREATEST(begins, today) - 1 LOOP
            part := 'message_' || pg_catalog.to_char(GREATEST(begins, today) + day, 'YYYYMMDD');
            EXECUTE pg_catalog.format('CREATE TABLE outbox.%I PARTITION OF outbox.message FOR VALUES FROM (%L) TO (%L)', part,
                                      GREATEST(begins, today) + day, GREATEST(begins, today) + day + 1);
            made := made || part;
        END LOOP;
        EXECUTE pg_catalog.format('ALTER TABLE outbox.message ATTACH PARTITION outbox.message_rest FOR VALUES FROM (%L) TO (MAXVALUE)', wanted);
    END IF;
    RETURN pg_catalog.array_to_string(made, ', ');
END
$$;
COMMENT ON FUNCTION outbox.extend_messages(integer) IS 'Makes the partitions of outbox.message for today and so many days ahead. Gives their names, or NULL when they are there. It waits 200 ms for its lock, then fails; until it succeeds, rows go into message_rest.';

CREATE FUNCTION outbox.message_held(name text, thorough boolean) RETURNS text
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
            EXECUTE pg_catalog.format('SELECT EXISTS (SELECT FROM outbox.%I WHERE txid >= $1 OR txid = ANY ($2))', p.name)
            INTO there USING pg_catalog.pg_snapshot_xmax(h.snapshot), ARRAY(SELECT pg_catalog.pg_snapshot_xip(h.snapshot));
            IF there THEN
                RETURN pg_catalog.format('rows that cursor %s could not see at its last read', h.name);
            END IF;
        END LOOP;
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION outbox.message_held(text, boolean) IS 'Who still needs this partition of outbox.message, in words; NULL: nobody. Thorough: rows that became visible late are looked for, too, which reads the whole partition.';

CREATE FUNCTION outbox.attach_messages(name text) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET datestyle = 'ISO, YMD' SET lock_timeout = '1s'
AS $$
DECLARE
    p record;
BEGIN
    SELECT m.* INTO STRICT p FROM outbox.message_partition AS m WHERE m.name = attach_messages.name;
    IF p.state = 'detaching' THEN
        EXECUTE pg_catalog.format('ALTER TABLE outbox.message DETACH PARTITION outbox.%I FINALIZE', p.name);
    ELSIF p.state = 'attached' THEN
        RETURN;
    END IF;
    EXECUTE pg_catalog.format('ALTER TABLE outbox.message ATTACH PARTITION outbox.%I FOR VALUES FROM (%s) TO (%L)', p.name,
                              CASE p.lower WHEN '-infinity' THEN 'MINVALUE' ELSE pg_catalog.quote_literal(p.lower) END, p.upper);
    -- Nobody waits for this transaction now, and a turn has its cursor's row for as long as it takes.
    PERFORM pg_catalog.set_config('lock_timeout', '10s', true);
    -- No turn goes on below a partition that is not attached: who stands behind its first instant has passed what lies there,
    -- or was told to.
    UPDATE outbox.cursor AS c SET relations = c.relations || p.relation
    WHERE c.relations[1] = 'outbox.message'::regclass AND c.position_created_at >= p.lower AND p.relation <> ALL (c.relations);
END
$$;
COMMENT ON FUNCTION outbox.attach_messages(text) IS 'Puts a partition of outbox.message back that is detached, or is being detached, and tells the cursors that have passed it; for its owner.';

CREATE FUNCTION outbox.prune_messages(older_than interval, OUT partition text, OUT held_by text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET lock_timeout = '1s'
AS $$
DECLARE
    p     record;
    oldest text;
    holder text;
    locks  boolean := false;
BEGIN
    FOR p IN SELECT m.* FROM outbox.message_partition AS m
             WHERE m.upper <= pg_catalog.clock_timestamp() - GREATEST(older_than, interval '0') ORDER BY m.upper LOOP
        BEGIN
            -- Keeps writers out, not readers: whoever may have written there has ended when it is granted.
            EXECUTE pg_catalog.format('LOCK TABLE ONLY outbox.%I IN SHARE MODE', p.name);
            held_by := outbox.message_held(p.name, true);
            IF held_by IS NULL THEN
                locks := true;
                LOCK TABLE ONLY outbox.message IN ACCESS EXCLUSIVE MODE;
                locks := false;
                -- Somebody may have wished to move back meanwhile.
                held_by := outbox.message_held(p.name, false);
                IF held_by IS NULL THEN
                    EXECUTE pg_catalog.format('DROP TABLE outbox.%I', p.name);
                    partition := p.name;
                    RETURN;
                END IF;
                -- Gives the locks back.
                RAISE EXCEPTION USING ERRCODE = 'object_in_use', MESSAGE = held_by;
            END IF;
        EXCEPTION
            WHEN object_in_use THEN
                NULL;
            WHEN lock_not_available THEN
                held_by := 'locks of ' || outbox.message_lockers(ARRAY[p.relation, 'outbox.message'::regclass]);
            WHEN undefined_table OR no_data_found THEN
                CONTINUE; -- somebody else was quicker
        END;
        IF oldest IS NULL THEN
            oldest := p.name;
            holder := held_by;
        END IF;
        -- Writers have waited behind this: not once more for the next partition.
        EXIT WHEN locks;
        IF p.state <> 'attached' THEN
            -- Somebody who was killed, or waited in vain, meant to drop it: until it is back, nobody can read it.
            BEGIN
                PERFORM outbox.attach_messages(p.name);
            EXCEPTION
                WHEN lock_not_available THEN
                    NULL; -- whoever needs it waits; the next pass tries again
                WHEN undefined_table OR no_data_found THEN
                    CONTINUE;
            END;
        END IF;
    END LOOP;
    partition := oldest;
    held_by := holder;
END
$$ STRICT;
COMMENT ON FUNCTION outbox.prune_messages(interval) IS 'Drops the oldest partition of outbox.message whose last day ended longer ago than this and that nobody needs: gives its name, and held_by NULL. When all are needed: the oldest, and who needs it. Nothing: no partition is old enough.';

CREATE FUNCTION outbox.partition_messages() RETURNS text
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
            USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Take them away, and make them anew on the partitioned table.';
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
COMMENT ON FUNCTION outbox.partition_messages() IS 'Makes outbox.message a table with a partition for each day; for its owner. Rows that are there become its first partition; cursors go on where they stand. NULL: it is partitioned already.';

REVOKE ALL ON FUNCTION outbox.extend_messages(integer), outbox.message_held(text, boolean), outbox.prune_messages(interval),
    outbox.partition_messages(), outbox.message_lockers(oid[]), outbox.attach_messages(text) FROM PUBLIC;

-- An empty table that nobody reads is partitioned at once. Any other is left as it is: that takes a quiet moment.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM outbox.message)
       AND NOT EXISTS (SELECT FROM outbox.cursor AS c WHERE c.relations[1] = 'outbox.message'::regclass OR c.identity ->> 'table' = 'outbox.message') THEN
        PERFORM outbox.partition_messages();
    END IF;
EXCEPTION
    WHEN object_not_in_prerequisite_state THEN
        RAISE NOTICE 'outbox.message is not partitioned: %', SQLERRM;
END
$$;

-- Relays that run already may prune from their next pass on: whoever may write cursors may.
DO $$
DECLARE
    role name;
BEGIN
    FOR role IN
        SELECT pg_catalog.pg_get_userbyid(a.grantee)
        FROM pg_catalog.pg_class AS c, pg_catalog.aclexplode(c.relacl) AS a
        WHERE c.oid = 'outbox.cursor'::regclass AND a.privilege_type = 'UPDATE' AND a.grantee NOT IN (0, c.relowner)
    LOOP
        EXECUTE pg_catalog.format('GRANT SELECT ON outbox.hold, outbox.safe_to_delete, outbox.message_partition TO %I', role);
        EXECUTE pg_catalog.format('GRANT EXECUTE ON FUNCTION outbox.prune_requests(interval, integer), '
                                  'outbox.prune_dead_letters(interval, integer), outbox.prune_messages(interval), '
                                  'outbox.extend_messages(integer), outbox.message_held(text, boolean) TO %I', role);
    END LOOP;
END
$$;

INSERT INTO outbox.version (version, oldest_binary) VALUES (5, 1);
