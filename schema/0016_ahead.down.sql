-- Back to version 15. Rows that were acknowledged beyond their cursor's position would be sent again: that is refused.
DROP TRIGGER rename_ahead ON outbox.cursor;
DROP TRIGGER delete_ahead ON outbox.cursor;
DROP FUNCTION outbox.follow_ahead();
LOCK TABLE outbox.ahead IN ACCESS EXCLUSIVE MODE;
DO $$
BEGIN
    IF EXISTS (SELECT FROM outbox.ahead AS a JOIN outbox.cursor AS c ON c.name = a.cursor
               WHERE a.seek = c.seek_applied AND a.since = c.created_at AND (c.position_created_at IS NULL OR a.created_at >= c.position_created_at)
                 AND (a.created_at, a.message_id) IS DISTINCT FROM (c.position_created_at, c.position_id)) THEN
        RAISE EXCEPTION 'there are rows that were acknowledged beyond the position of their cursor' USING ERRCODE = 'object_not_in_prerequisite_state',
            HINT = 'Remove in_flight from [relay.turn] and let the relays pass them (SELECT cursor, count(*) FROM outbox.ahead GROUP BY cursor), or delete them there: they are then sent again.';
    END IF;
END
$$;
DROP TABLE outbox.ahead;
