-- Scheduled actions: what is to be done when, written by applications in plain SQL, and each occurrence of it.
-- Only expands: programs built for versions 1 to 5 go on.

-- A schedule's row is written for each of its occurrences; frequent vacuuming keeps dead versions few.
CREATE TABLE outbox.schedule (
    schedule_id    bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name           text        NOT NULL,
    tenant         text        NOT NULL DEFAULT '',
    relay          text        NOT NULL,
    rule           text,
    time_zone      text        NOT NULL DEFAULT 'UTC',
    starts_at      timestamptz,
    ends_at        timestamptz,
    payload        jsonb       NOT NULL DEFAULT '{}',
    query          text,
    command        text,
    missed         text        NOT NULL DEFAULT 'latest',
    overlap        text        NOT NULL DEFAULT 'skip',
    on_interrupted text        NOT NULL DEFAULT 'retry',
    timeout        interval    NOT NULL DEFAULT '1 minute',
    enabled        boolean     NOT NULL DEFAULT true,
    next_at        timestamptz,
    last_at        timestamptz,
    problem        text,
    changed_at     timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    created_at     timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    CONSTRAINT schedule_name UNIQUE (tenant, name),
    CONSTRAINT schedule_name_length CHECK (pg_catalog.length(name) BETWEEN 1 AND 200 AND pg_catalog.length(tenant) <= 200),
    CONSTRAINT schedule_rule_length CHECK (pg_catalog.length(rule) <= 2000 AND pg_catalog.length(time_zone) <= 100),
    CONSTRAINT schedule_when CHECK (rule IS NOT NULL OR starts_at IS NOT NULL),
    CONSTRAINT schedule_payload_object CHECK (pg_catalog.jsonb_typeof(payload) = 'object' AND pg_catalog.octet_length(payload::text) <= 1048576),
    CONSTRAINT schedule_missed_known CHECK (missed IN ('all', 'latest', 'none')),
    CONSTRAINT schedule_overlap_known CHECK (overlap IN ('skip', 'queue')),
    CONSTRAINT schedule_on_interrupted_known CHECK (on_interrupted IN ('retry', 'fail')),
    CONSTRAINT schedule_timeout_range CHECK (timeout BETWEEN interval '1 second' AND interval '1 day')
) WITH (autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0, fillfactor = 70);
CREATE INDEX schedule_next ON outbox.schedule (relay, next_at) WHERE enabled AND next_at < 'infinity';
CREATE INDEX schedule_unplanned ON outbox.schedule (relay) WHERE enabled AND next_at IS NULL;
CREATE INDEX schedule_problem ON outbox.schedule (relay) WHERE problem IS NOT NULL;
COMMENT ON TABLE outbox.schedule IS 'What is to be done when: a recurrence rule, or one date. Applications insert, update and delete rows; an edit replaces the schedule''s future, never its past.';
COMMENT ON COLUMN outbox.schedule.schedule_id IS 'Names the schedule; never used again.';
COMMENT ON COLUMN outbox.schedule.name IS 'Its name, for people; unique for its tenant.';
COMMENT ON COLUMN outbox.schedule.tenant IS 'Whose it is: tenants do not hold each other up. Empty: nobody''s. *: one action for each schema that the relay''s `schema` matches.';
COMMENT ON COLUMN outbox.schedule.relay IS 'The relay that carries its actions out: one of [relay.source.schedule].';
COMMENT ON COLUMN outbox.schedule.rule IS 'A recurrence rule by RFC 5545, for example FREQ=MONTHLY;BYDAY=1MO;BYHOUR=9. NULL: once, at starts_at.';
COMMENT ON COLUMN outbox.schedule.time_zone IS 'The zone of the rule''s hours and days, for example Europe/Berlin. Rules by hours, minutes and seconds count in UTC.';
COMMENT ON COLUMN outbox.schedule.starts_at IS 'The rule''s beginning (DTSTART), or the one date. NULL: the rule counts from when it was written.';
COMMENT ON COLUMN outbox.schedule.ends_at IS 'No occurrence lies behind this.';
COMMENT ON COLUMN outbox.schedule.payload IS 'The values that the sink''s templates print, or that a command reads: a JSON object.';
COMMENT ON COLUMN outbox.schedule.query IS 'The query of the relay''s configuration whose rows the templates print, by name.';
COMMENT ON COLUMN outbox.schedule.command IS 'The program of the relay''s configuration that is started, by name.';
COMMENT ON COLUMN outbox.schedule.missed IS 'What becomes of occurrences that came while no replica was there: all, only the latest, or none.';
COMMENT ON COLUMN outbox.schedule.overlap IS 'What becomes of an occurrence that comes while an earlier one has not ended: skip (it is recorded as skipped), or queue.';
COMMENT ON COLUMN outbox.schedule.on_interrupted IS 'What becomes of an action that was begun and never ended, or whose outcome nobody knows: retry, or fail.';
COMMENT ON COLUMN outbox.schedule.timeout IS 'How long an action may take.';
COMMENT ON COLUMN outbox.schedule.enabled IS 'False: it makes no occurrences.';
COMMENT ON COLUMN outbox.schedule.next_at IS 'When it is next due. NULL: a replica is to compute it; infinity: never again.';
COMMENT ON COLUMN outbox.schedule.last_at IS 'The newest occurrence that was made, or passed over.';
COMMENT ON COLUMN outbox.schedule.problem IS 'Why it cannot run: a short word and the reason. Ends with the next edit.';
COMMENT ON COLUMN outbox.schedule.changed_at IS 'When it was written, or when what says when was last changed: its occurrences lie behind this.';
COMMENT ON COLUMN outbox.schedule.created_at IS 'When it was written.';

CREATE TABLE outbox.action (
    action_id      bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    schedule_id    bigint      NOT NULL,
    schedule       text        NOT NULL,
    tenant         text        NOT NULL,
    relay          text        NOT NULL,
    planned_at     timestamptz NOT NULL,
    due_at         timestamptz NOT NULL,
    try_at         timestamptz NOT NULL,
    started_at     timestamptz,
    finished_at    timestamptz,
    status         text        NOT NULL,
    manual         boolean     NOT NULL DEFAULT false,
    payload        jsonb       NOT NULL,
    query          text,
    command        text,
    on_interrupted text        NOT NULL,
    timeout        interval    NOT NULL,
    attempts       integer     NOT NULL DEFAULT 0,
    progress       text,
    result         text,
    error          jsonb,
    token          text,
    claimed_by     text,
    expires_at     timestamptz,
    created_at     timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    updated_at     timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    CONSTRAINT action_occurrence UNIQUE (schedule_id, tenant, planned_at),
    CONSTRAINT action_status_known CHECK (status IN ('queued', 'due', 'running', 'completed', 'failed', 'skipped')),
    CONSTRAINT action_running_claimed CHECK (status <> 'running' OR token IS NOT NULL AND claimed_by IS NOT NULL AND expires_at IS NOT NULL AND started_at IS NOT NULL),
    CONSTRAINT action_finished CHECK ((status IN ('completed', 'failed', 'skipped')) = (finished_at IS NOT NULL)),
    CONSTRAINT action_result_length CHECK (pg_catalog.octet_length(result) <= 8192 AND pg_catalog.octet_length(error::text) <= 8192)
) WITH (autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX action_open ON outbox.action (schedule_id, tenant, planned_at) WHERE status IN ('queued', 'due', 'running');
CREATE INDEX action_due ON outbox.action (relay, try_at, action_id) WHERE status = 'due';
CREATE INDEX action_due_tenant ON outbox.action (relay, tenant, try_at, action_id) WHERE status = 'due';
CREATE INDEX action_running ON outbox.action (relay, expires_at) WHERE status = 'running';
CREATE INDEX action_finished_at ON outbox.action (finished_at) WHERE status IN ('completed', 'failed', 'skipped');
COMMENT ON TABLE outbox.action IS 'Occurrences of schedules: one row for each instant and tenant, and what became of it. Outlives its schedule.';
COMMENT ON COLUMN outbox.action.action_id IS 'Names the action, and is its message id for the receiver.';
COMMENT ON COLUMN outbox.action.schedule_id IS 'Its schedule, which may be gone.';
COMMENT ON COLUMN outbox.action.schedule IS 'Its schedule''s name then.';
COMMENT ON COLUMN outbox.action.tenant IS 'Whose it is; of a schedule for each tenant, one of them.';
COMMENT ON COLUMN outbox.action.relay IS 'The relay that carries it out.';
COMMENT ON COLUMN outbox.action.planned_at IS 'The instant of its rule.';
COMMENT ON COLUMN outbox.action.due_at IS 'Since when it could be begun: planned_at, or when it was made.';
COMMENT ON COLUMN outbox.action.try_at IS 'The same; after a failure, when it is tried again.';
COMMENT ON COLUMN outbox.action.started_at IS 'When it was last begun.';
COMMENT ON COLUMN outbox.action.finished_at IS 'When it ended.';
COMMENT ON COLUMN outbox.action.status IS 'queued: waits for an earlier one of its schedule. due: to be begun. running: a replica has it, or had it when it ended. completed, failed. skipped: an earlier one had not ended, or there was nothing to report.';
COMMENT ON COLUMN outbox.action.manual IS 'Somebody asked for it; its instant is not the rule''s.';
COMMENT ON COLUMN outbox.action.payload IS 'The schedule''s then.';
COMMENT ON COLUMN outbox.action.query IS 'The schedule''s then.';
COMMENT ON COLUMN outbox.action.command IS 'The schedule''s then.';
COMMENT ON COLUMN outbox.action.on_interrupted IS 'The schedule''s then.';
COMMENT ON COLUMN outbox.action.timeout IS 'The schedule''s then.';
COMMENT ON COLUMN outbox.action.attempts IS 'How many tries have ended without success.';
COMMENT ON COLUMN outbox.action.progress IS 'What a running command said last.';
COMMENT ON COLUMN outbox.action.result IS 'What the receiver or the command answered, or why it was skipped; at most 8 KiB.';
COMMENT ON COLUMN outbox.action.error IS 'Why the last try failed: at, class, code, message, hint.';
COMMENT ON COLUMN outbox.action.token IS 'Names the claim: who no longer has this token may not record anything.';
COMMENT ON COLUMN outbox.action.claimed_by IS 'The replica that began it last.';
COMMENT ON COLUMN outbox.action.expires_at IS 'When another replica may take it up: its claimant says again and again that it is at work.';
COMMENT ON COLUMN outbox.action.created_at IS 'When the row was made.';
COMMENT ON COLUMN outbox.action.updated_at IS 'When the row was last written.';

-- Who finds an earlier action that has not ended locks its row until the new one is there: whoever ends that action must have
-- it alone (FOR UPDATE), and then sees what is queued behind it. FOR KEY SHARE, because an application's transaction may stay
-- open after its edit: the action must be kept, claimed and tried again meanwhile. An action that is being ended this instant
-- counts as ended. So nobody waits on either side, and nobody in a circle.
CREATE FUNCTION outbox.make_action(of outbox.schedule, planned timestamptz, queues boolean, asked boolean, tenants text[])
RETURNS TABLE (tenant text, status text)
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    who text;
    busy boolean;
BEGIN
    FOREACH who IN ARRAY CASE WHEN of.tenant = '*' THEN COALESCE(tenants, '{}') ELSE ARRAY[of.tenant] END LOOP
        PERFORM FROM outbox.action AS a
        WHERE a.schedule_id = of.schedule_id AND a.tenant = who AND a.status IN ('queued', 'due', 'running')
          AND a.relay = of.relay -- what it left behind at another relay, which may be gone, holds nothing up
        ORDER BY a.planned_at DESC LIMIT 1 FOR KEY SHARE SKIP LOCKED;
        busy := FOUND;
        RETURN QUERY
        INSERT INTO outbox.action AS a (schedule_id, schedule, tenant, relay, planned_at, due_at, try_at, finished_at, status, manual,
                                        payload, query, command, on_interrupted, timeout, result)
        SELECT of.schedule_id, of.name, who, of.relay, planned, GREATEST(planned, of.changed_at), GREATEST(planned, of.changed_at),
               CASE WHEN s.status = 'skipped' THEN pg_catalog.clock_timestamp() END, s.status, asked,
               of.payload, of.query, of.command, of.on_interrupted, of.timeout,
               CASE WHEN s.status = 'skipped' THEN 'overlap: an earlier action of this schedule had not ended' END
        FROM (SELECT CASE WHEN NOT busy THEN 'due' WHEN queues OR of.overlap = 'queue' THEN 'queued' ELSE 'skipped' END AS status) AS s
        ON CONFLICT DO NOTHING
        RETURNING a.tenant, a.status;
    END LOOP;
END
$$;
COMMENT ON FUNCTION outbox.make_action(outbox.schedule, timestamptz, boolean, boolean, text[]) IS 'Makes the actions of one occurrence: one, or one for each of the tenants of a schedule for each tenant. An instant that has been made is left alone.';
REVOKE ALL ON FUNCTION outbox.make_action(outbox.schedule, timestamptz, boolean, boolean, text[]) FROM PUBLIC;

CREATE FUNCTION outbox.schedule_changed() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    tenants text[];
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF NEW.schedule_id <> OLD.schedule_id THEN
            RAISE EXCEPTION 'schedule_id names a schedule, and does not change';
        END IF;
        IF ROW(NEW.tenant, NEW.relay, NEW.rule, NEW.time_zone, NEW.starts_at, NEW.ends_at, NEW.enabled)
           IS NOT DISTINCT FROM ROW(OLD.tenant, OLD.relay, OLD.rule, OLD.time_zone, OLD.starts_at, OLD.ends_at, OLD.enabled) THEN
            RETURN NEW;
        END IF;
    END IF;
    -- What was due already is of the past, which an edit does not change.
    IF TG_OP <> 'INSERT' AND OLD.enabled AND OLD.missed <> 'none' AND OLD.next_at <= pg_catalog.clock_timestamp() THEN
        -- Which schemas are tenants, only the relay's configuration says: those of the occurrence before.
        IF OLD.tenant = '*' THEN
            SELECT pg_catalog.array_agg(DISTINCT a.tenant) INTO tenants FROM outbox.action AS a
            WHERE a.schedule_id = OLD.schedule_id AND a.planned_at IN (OLD.last_at, OLD.next_at);
        END IF;
        PERFORM outbox.make_action(OLD, OLD.next_at, false, false, tenants);
        OLD.last_at := OLD.next_at;
    END IF;
    IF TG_OP = 'DELETE' THEN
        RETURN OLD;
    END IF;
    NEW.next_at := NULL;
    NEW.problem := NULL;
    NEW.last_at := CASE TG_OP WHEN 'UPDATE' THEN OLD.last_at END;
    NEW.changed_at := pg_catalog.clock_timestamp();
    IF TG_OP = 'INSERT' THEN
        NEW.created_at := NEW.changed_at;
    END IF;
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION outbox.schedule_changed() IS 'Has the next occurrence of a schedule computed anew when it was written or edited; one that was due already is made first.';
REVOKE ALL ON FUNCTION outbox.schedule_changed() FROM PUBLIC;
CREATE TRIGGER schedule_changed BEFORE INSERT OR DELETE OR UPDATE ON outbox.schedule
    FOR EACH ROW EXECUTE FUNCTION outbox.schedule_changed();

CREATE FUNCTION outbox.prune_actions(older_than interval, most integer) RETURNS integer
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    WITH old AS (
        SELECT a.action_id FROM outbox.action AS a
        WHERE a.status IN ('completed', 'failed', 'skipped')
          AND a.finished_at < pg_catalog.statement_timestamp() - GREATEST(older_than, interval '0')
        ORDER BY a.finished_at LIMIT most FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM outbox.action AS a USING old WHERE a.action_id = old.action_id RETURNING 1
    )
    SELECT pg_catalog.count(*)::integer FROM gone
$$ STRICT;
COMMENT ON FUNCTION outbox.prune_actions(interval, integer) IS 'Deletes actions that ended longer ago than this, at most so many, oldest first. Gives their number.';
REVOKE ALL ON FUNCTION outbox.prune_actions(interval, integer) FROM PUBLIC;

CREATE FUNCTION outbox.cancel_actions(schedule text, tenant text DEFAULT '') RETURNS integer
    LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    WITH waiting AS (
        SELECT a.action_id FROM outbox.action AS a
        WHERE a.schedule = cancel_actions.schedule AND a.tenant = cancel_actions.tenant AND a.status IN ('queued', 'due')
        ORDER BY a.action_id FOR UPDATE SKIP LOCKED
    ), gone AS (
        UPDATE outbox.action AS a SET status = 'skipped', finished_at = pg_catalog.clock_timestamp(), updated_at = pg_catalog.clock_timestamp(),
               result = 'cancelled by ' || session_user
        FROM waiting WHERE a.action_id = waiting.action_id RETURNING 1
    )
    SELECT pg_catalog.count(*)::integer FROM gone
$$;
COMMENT ON FUNCTION outbox.cancel_actions(text, text) IS 'Ends the actions of a schedule, by name and tenant, that have not been begun, or wait to be tried again: they are skipped. Also when the schedule is gone. Gives their number.';
REVOKE ALL ON FUNCTION outbox.cancel_actions(text, text) FROM PUBLIC;

-- Roles that relays run as already may do what relays do now: an upgrade needs no second look at grants.
DO $$
DECLARE
    relay text;
BEGIN
    FOR relay IN
        SELECT DISTINCT g.grantee::pg_catalog.regrole::text
        FROM pg_catalog.pg_class AS c, pg_catalog.aclexplode(c.relacl) AS g
        WHERE c.oid = 'outbox.cursor'::pg_catalog.regclass AND g.privilege_type = 'UPDATE' AND g.grantee NOT IN (0, c.relowner)
    LOOP
        EXECUTE pg_catalog.format('GRANT SELECT, UPDATE (next_at, last_at, problem, enabled) ON outbox.schedule TO %1$s; '
            'GRANT SELECT, UPDATE ON outbox.action TO %1$s; '
            'GRANT EXECUTE ON FUNCTION outbox.make_action(outbox.schedule, timestamptz, boolean, boolean, text[]), outbox.prune_actions(interval, integer) TO %1$s', relay);
    END LOOP;
END
$$;

INSERT INTO outbox.version (version, oldest_binary) VALUES (6, 1);
