-- Back to version 5. Schedules are what somebody wants done: while there are any, this fails.
LOCK TABLE outbox.schedule, outbox.action IN ACCESS EXCLUSIVE MODE;
DO $$
BEGIN
    IF EXISTS (SELECT FROM outbox.schedule) OR EXISTS (SELECT FROM outbox.action WHERE status IN ('queued', 'due', 'running')) THEN
        RAISE EXCEPTION 'outbox.schedule has rows, or outbox.action has some that have not ended: they would never be carried out; delete them if that is meant';
    END IF;
END
$$;
DROP FUNCTION outbox.cancel_actions(text, text);
DROP FUNCTION outbox.prune_actions(interval, integer);
DROP TRIGGER schedule_changed ON outbox.schedule;
DROP FUNCTION outbox.schedule_changed();
DROP FUNCTION outbox.make_action(outbox.schedule, timestamptz, boolean, boolean, text[]);
DROP TABLE outbox.action;
DROP TABLE outbox.schedule;
