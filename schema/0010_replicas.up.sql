-- Version 10: replicas are rows, so that a replica with another configuration is seen, and who was there at an instant is known.

-- A replica writes its row when it starts, when what it reports changes (at most once a minute after the start), and when it
-- stops; whether it lives is shown by a lock that its sessions hold, not by this table. A row of a few hundred bytes is all that is ever read.
CREATE TABLE outbox.replica (
    instance   uuid        PRIMARY KEY DEFAULT pg_catalog.gen_random_uuid(),
    id         text        NOT NULL,
    version    text        NOT NULL,
    started_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    seen_at    timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    stopped_at timestamptz,
    relays     jsonb       NOT NULL DEFAULT '[]',
    CONSTRAINT replica_id_length CHECK (pg_catalog.length(id) BETWEEN 1 AND 100),
    CONSTRAINT replica_relays_array CHECK (pg_catalog.jsonb_typeof(relays) = 'array')
) WITH (autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0.02, fillfactor = 70);
CREATE INDEX replica_by_id ON outbox.replica (id, started_at);
COMMENT ON TABLE outbox.replica IS 'Processes of `outbox-relay run`: what each runs with, and since when. Rows of processes that have ended are deleted after a while.';
COMMENT ON COLUMN outbox.replica.instance IS 'Names the process; a replica that restarts is another one.';
COMMENT ON COLUMN outbox.replica.id IS 'The replica''s id: --replica-id, or the host name and process id. Several processes may have one.';
COMMENT ON COLUMN outbox.replica.version IS 'The program''s version.';
COMMENT ON COLUMN outbox.replica.started_at IS 'When the process started, by this server''s clock.';
COMMENT ON COLUMN outbox.replica.seen_at IS 'When the process last wrote this row, or when another replica last found one of its sessions.';
COMMENT ON COLUMN outbox.replica.stopped_at IS 'When the process stopped in order, or when another replica found no session of it. NULL: not known to have stopped.';
COMMENT ON COLUMN outbox.replica.relays IS 'Its relays: name, config_hash, refused (null, or code and message).';

-- A row for each relay of schedules in each process, and a new one after a gap: an occurrence was missed when no row covers its
-- instant. Written when a watch begins and ends, and while schedules are due that cannot be planned.
CREATE TABLE outbox.schedule_watch (
    watch_id bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    instance uuid        NOT NULL REFERENCES outbox.replica ON DELETE CASCADE,
    relay    text        NOT NULL,
    since    timestamptz NOT NULL,
    seen_at  timestamptz NOT NULL,
    ended_at timestamptz
) WITH (autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0.02, fillfactor = 70);
CREATE INDEX schedule_watch_relay ON outbox.schedule_watch (relay);
CREATE INDEX schedule_watch_instance ON outbox.schedule_watch (instance);
COMMENT ON TABLE outbox.schedule_watch IS 'When which process watched the schedules of a relay: decides which occurrences were missed.';
COMMENT ON COLUMN outbox.schedule_watch.watch_id IS 'Names the row.';
COMMENT ON COLUMN outbox.schedule_watch.instance IS 'The process.';
COMMENT ON COLUMN outbox.schedule_watch.relay IS 'Its relay of [relay.source.schedule].';
COMMENT ON COLUMN outbox.schedule_watch.since IS 'When it began to watch, by this server''s clock.';
COMMENT ON COLUMN outbox.schedule_watch.seen_at IS 'When it last reported that it watches; until when it is there is said by a lock of its session, too.';
COMMENT ON COLUMN outbox.schedule_watch.ended_at IS 'When it stopped watching. NULL: it watches, or its process ended without a report.';

-- What a relay's name leads to: removing its cursors, and moving everything to another name. Functions of the owner, so that a
-- relay's role can do both, and cannot delete a cursor in another way.
CREATE FUNCTION outbox.relay_belongings(of_relay text) RETURNS TABLE (what text, of_cursor text, rows bigint, open bigint)
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
    WITH named AS (SELECT c.name FROM outbox.cursor AS c WHERE c.relay = of_relay UNION SELECT of_relay)
    SELECT k.what, k.of_cursor, k.rows, k.open FROM (
        SELECT 1, 'rows in flight', c.name, pg_catalog.jsonb_array_length(c.token -> 'rows')::bigint,
            pg_catalog.jsonb_array_length(c.token -> 'rows')::bigint FROM outbox.cursor AS c
        WHERE c.relay = of_relay AND c.token IS NOT NULL
        UNION ALL
        -- A row that is marked and was not sent is known to its claim alone.
        SELECT 2, 'unfinished sends', u.relay, pg_catalog.count(*), pg_catalog.count(*) FROM outbox.claim AS u
        WHERE u.relay IN (TABLE named) AND (u.state = 'sending' OR u.state = 'waiting' AND u.marked) GROUP BY u.relay
        UNION ALL
        SELECT 3, 'unknown outcomes', u.relay, pg_catalog.count(*), pg_catalog.count(*) FROM outbox.claim AS u
        WHERE u.relay IN (TABLE named) AND u.state = 'unknown' GROUP BY u.relay
        UNION ALL
        SELECT 4, 'dead letters', d.cursor, pg_catalog.count(*), pg_catalog.count(*) FILTER (WHERE d.state IN ('dead', 'redriving'))
        FROM outbox.dead_letter AS d WHERE d.cursor IN (TABLE named) GROUP BY d.cursor
        UNION ALL
        SELECT 5, CASE r.status WHEN 'unknown' THEN 'unknown requests' WHEN 'failed' THEN 'failed requests' ELSE 'requests' END,
            of_relay, pg_catalog.count(*), pg_catalog.count(*) FILTER (WHERE r.status <> 'completed')
        FROM outbox.request AS r WHERE r.relay = of_relay GROUP BY 2
        UNION ALL
        SELECT 6, 'schedules', of_relay, pg_catalog.count(*),
            pg_catalog.count(*) FILTER (WHERE s.enabled AND COALESCE(s.next_at, '-infinity') < 'infinity')
        FROM outbox.schedule AS s WHERE s.relay = of_relay
        UNION ALL
        SELECT 7, 'actions', of_relay, pg_catalog.count(*), pg_catalog.count(*) FILTER (WHERE a.status IN ('queued', 'due', 'running'))
        FROM outbox.action AS a WHERE a.relay = of_relay
        UNION ALL
        SELECT 8, 'marks of rows sent', m.relay, pg_catalog.count(*), 0 FROM outbox.sent AS m WHERE m.relay IN (TABLE named) GROUP BY m.relay
    ) AS k (n, what, of_cursor, rows, open) ORDER BY k.n, k.what, k.of_cursor
$$;
COMMENT ON FUNCTION outbox.relay_belongings(text) IS 'What is kept under a relay''s name beside its cursors, of each cursor: how many rows, and how many of them are not finished, so that the cursors cannot be removed.';
REVOKE ALL ON FUNCTION outbox.relay_belongings(text) FROM PUBLIC;

CREATE FUNCTION outbox.remove_cursors(of_relay text, operator text, given_up jsonb) RETURNS integer
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    names  text[];
    places jsonb;
    open   text;
BEGIN
    PERFORM pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('outbox-relay cursors of ' || of_relay, 0));
    PERFORM FROM outbox.cursor AS c WHERE c.relay = of_relay ORDER BY c.name FOR UPDATE;
    SELECT pg_catalog.string_agg(b.open || ' ' || b.what || CASE WHEN b.of_cursor <> of_relay THEN ' of ' || b.of_cursor ELSE '' END, ', ')
    INTO open FROM outbox.relay_belongings(of_relay) AS b WHERE b.open > 0;
    IF open IS NOT NULL THEN
        RAISE EXCEPTION 'relay % has %', of_relay, open USING ERRCODE = 'object_not_in_prerequisite_state',
            HINT = 'Finish them first: `outbox-relay cursor remove` prints how.';
    END IF;
    -- A relay that was refused before it had a cursor has a status only.
    SELECT pg_catalog.array_agg(c.name) || of_relay, pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
        'name', c.name, 'created_at', c.position_created_at, 'id', c.position_id, 'identity', c.identity, 'given_up', given_up -> c.name) ORDER BY c.name)
    INTO names, places FROM outbox.cursor AS c WHERE c.relay = of_relay;
    DELETE FROM outbox.cursor AS c WHERE c.relay = of_relay;
    DELETE FROM outbox.control AS k WHERE k.cursor = ANY (names);
    DELETE FROM outbox.cursor_status AS s WHERE s.cursor = ANY (names);
    DELETE FROM outbox.claim AS u WHERE u.relay = ANY (names) AND u.state IN ('claimed', 'waiting');
    DELETE FROM outbox.template AS t WHERE t.relay = of_relay;
    INSERT INTO outbox.operation (operator, verb, cursor, detail)
    VALUES (session_user || '/' || operator, 'cursor remove', of_relay, pg_catalog.jsonb_build_object('cursors', COALESCE(places, '[]')));
    RETURN pg_catalog.jsonb_array_length(COALESCE(places, '[]'));
END
$$;
COMMENT ON FUNCTION outbox.remove_cursors(text, text, jsonb) IS 'Removes the cursors of a relay, with what operators want of them and what the relay reported. Fails while something of the relay is not finished. Gives their number. given_up says by cursor how many rows were not delivered.';
REVOKE ALL ON FUNCTION outbox.remove_cursors(text, text, jsonb) FROM PUBLIC;

CREATE FUNCTION outbox.rename_cursors(old_relay text, new_relay text, operator text) RETURNS integer
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    olds   text[];
    news   text[];
    tail   CONSTANT integer := pg_catalog.length(old_relay) + 1;
    places jsonb;
    kept   outbox.schedule%ROWTYPE;
BEGIN
    PERFORM pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('outbox-relay cursors of ' || r.name, 0))
    FROM (SELECT n AS name FROM pg_catalog.unnest(ARRAY[old_relay, new_relay]) AS n ORDER BY n) AS r;
    PERFORM FROM outbox.cursor AS c WHERE c.relay = old_relay ORDER BY c.name FOR UPDATE;
    IF EXISTS (SELECT FROM outbox.cursor AS c WHERE c.relay = new_relay)
       OR EXISTS (SELECT FROM outbox.relay_belongings(new_relay) AS b WHERE b.open > 0) THEN
        RAISE EXCEPTION 'there is a relay % already', new_relay USING ERRCODE = 'object_not_in_prerequisite_state',
            HINT = 'Remove its cursors first: outbox-relay cursor remove ' || new_relay;
    END IF;
    SELECT pg_catalog.array_agg(c.name ORDER BY c.name) || old_relay, pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
        'name', c.name, 'created_at', c.position_created_at, 'id', c.position_id) ORDER BY c.name)
    INTO olds, places FROM outbox.cursor AS c WHERE c.relay = old_relay;
    IF places IS NULL THEN
        RAISE EXCEPTION 'relay % has no cursor', old_relay USING ERRCODE = 'no_data_found';
    END IF;
    news := ARRAY(SELECT new_relay || pg_catalog.substr(n, tail) FROM pg_catalog.unnest(olds) AS n);
    -- What a relay of the new name left: reports of one that never had a cursor, and history of one that was removed.
    DELETE FROM outbox.control AS k WHERE k.cursor = ANY (news);
    DELETE FROM outbox.cursor_status AS s WHERE s.cursor = ANY (news);
    DELETE FROM outbox.dead_letter AS d USING outbox.dead_letter AS o WHERE d.cursor = ANY (news) AND o.cursor = ANY (olds)
        AND d.cursor = new_relay || pg_catalog.substr(o.cursor, tail) AND (d.created_at, d.message_id) = (o.created_at, o.message_id);
    DELETE FROM outbox.claim AS u USING outbox.claim AS o WHERE u.relay = ANY (news) AND o.relay = ANY (olds)
        AND u.relay = new_relay || pg_catalog.substr(o.relay, tail) AND u.key = o.key;
    -- Of two marks the one of the later due time says more.
    DELETE FROM outbox.sent AS m USING outbox.sent AS o WHERE m.relay = ANY (news) AND o.relay = ANY (olds)
        AND m.relay = new_relay || pg_catalog.substr(o.relay, tail) AND m.key = o.key AND m.due_at <= o.due_at;
    DELETE FROM outbox.sent AS m USING outbox.sent AS o WHERE m.relay = ANY (olds) AND o.relay = ANY (news)
        AND o.relay = new_relay || pg_catalog.substr(m.relay, tail) AND m.key = o.key;

    UPDATE outbox.cursor AS c SET name = new_relay || pg_catalog.substr(c.name, tail), relay = new_relay,
        updated_at = pg_catalog.clock_timestamp() WHERE c.relay = old_relay;
    UPDATE outbox.control AS k SET cursor = new_relay || pg_catalog.substr(k.cursor, tail) WHERE k.cursor = ANY (olds);
    UPDATE outbox.cursor_status AS s SET cursor = new_relay || pg_catalog.substr(s.cursor, tail) WHERE s.cursor = ANY (olds);
    UPDATE outbox.dead_letter AS d SET cursor = new_relay || pg_catalog.substr(d.cursor, tail) WHERE d.cursor = ANY (olds);
    UPDATE outbox.claim AS u SET relay = new_relay || pg_catalog.substr(u.relay, tail) WHERE u.relay = ANY (olds);
    UPDATE outbox.sent AS m SET relay = new_relay || pg_catalog.substr(m.relay, tail) WHERE m.relay = ANY (olds);
    UPDATE outbox.template AS t SET relay = new_relay WHERE t.relay = old_relay;
    UPDATE outbox.request AS r SET relay = new_relay WHERE r.relay = old_relay;
    -- For schedule_changed() another relay is an edit, which ends the past. This one is not: what was missed stays missed.
    FOR kept IN SELECT * FROM outbox.schedule AS s WHERE s.relay = old_relay ORDER BY s.schedule_id FOR UPDATE LOOP
        UPDATE outbox.schedule AS s SET next_at = 'infinity' WHERE s.schedule_id = kept.schedule_id;
        UPDATE outbox.schedule AS s SET relay = new_relay WHERE s.schedule_id = kept.schedule_id;
        UPDATE outbox.schedule AS s SET next_at = kept.next_at, last_at = kept.last_at, problem = kept.problem,
            changed_at = kept.changed_at WHERE s.schedule_id = kept.schedule_id;
    END LOOP;
    UPDATE outbox.action AS a SET relay = new_relay WHERE a.relay = old_relay;
    UPDATE outbox.schedule_watch AS w SET relay = new_relay WHERE w.relay = old_relay;
    INSERT INTO outbox.operation (operator, verb, cursor, detail)
    VALUES (session_user || '/' || operator, 'cursor rename', new_relay, pg_catalog.jsonb_build_object('from', old_relay, 'cursors', places));
    RETURN pg_catalog.jsonb_array_length(places);
END
$$;
COMMENT ON FUNCTION outbox.rename_cursors(text, text, text) IS 'Gives a relay''s cursors another name, with everything that is kept under the old one. Fails when a relay of the new name has cursors. Gives their number.';
REVOKE ALL ON FUNCTION outbox.rename_cursors(text, text, text) FROM PUBLIC;

CREATE FUNCTION outbox.stamp_operation() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    NEW.at := pg_catalog.clock_timestamp();
    IF NEW.operator IS DISTINCT FROM session_user AND NOT pg_catalog.starts_with(COALESCE(NEW.operator, ''), session_user || '/') THEN
        NEW.operator := pg_catalog.concat_ws('/', session_user, NEW.operator);
    END IF;
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION outbox.stamp_operation() IS 'Sets the time of an operation, and begins its operator with the role that is logged in.';
REVOKE ALL ON FUNCTION outbox.stamp_operation() FROM PUBLIC;
CREATE TRIGGER stamp_operation BEFORE INSERT ON outbox.operation FOR EACH ROW EXECUTE FUNCTION outbox.stamp_operation();
COMMENT ON COLUMN outbox.operation.operator IS 'Who: the role that was logged in, which a trigger sets, and after a slash the operating system''s user or the replica, as reported.';

-- Roles that relays run as already may do it: an upgrade needs no second look at grants.
DO $$
DECLARE
    relay text;
BEGIN
    FOR relay IN
        SELECT DISTINCT g.grantee::pg_catalog.regrole::text
        FROM pg_catalog.pg_class AS c, pg_catalog.aclexplode(c.relacl) AS g
        WHERE c.oid = 'outbox.cursor'::pg_catalog.regclass AND g.privilege_type = 'UPDATE' AND g.grantee NOT IN (0, c.relowner)
    LOOP
        EXECUTE pg_catalog.format('GRANT SELECT, INSERT, UPDATE, DELETE ON outbox.replica TO %s', relay);
        EXECUTE pg_catalog.format('GRANT SELECT, INSERT, UPDATE ON outbox.schedule_watch TO %s', relay);
        EXECUTE pg_catalog.format('GRANT EXECUTE ON FUNCTION outbox.relay_belongings(text), outbox.remove_cursors(text, text, jsonb), '
            'outbox.rename_cursors(text, text, text) TO %s', relay);
        EXECUTE pg_catalog.format('REVOKE INSERT, UPDATE ON outbox.operation FROM %s', relay);
        EXECUTE pg_catalog.format('GRANT INSERT (operator, verb, cursor, detail) ON outbox.operation TO %s', relay);
    END LOOP;
END
$$;

INSERT INTO outbox.version (version, oldest_binary) VALUES (10, 1);
