-- Back to version 13. Rows that are parked have not been sent: they are not thrown away.
DROP TRIGGER rename_parked_keys ON outbox.cursor;
DROP TRIGGER keep_parked_keys ON outbox.cursor;
DROP FUNCTION outbox.keep_parked_keys();
DROP TRIGGER release_all_parked_keys ON outbox.dead_letter;
DROP TRIGGER release_parked_keys_of_deleted ON outbox.dead_letter;
DROP TRIGGER release_parked_keys ON outbox.dead_letter;
DROP FUNCTION outbox.release_parked_keys();
LOCK TABLE outbox.parked_key IN ACCESS EXCLUSIVE MODE;
DO $$
BEGIN
    IF EXISTS (SELECT FROM outbox.parked_key) THEN
        RAISE EXCEPTION 'there are parked keys, whose rows have not been sent' USING ERRCODE = 'object_not_in_prerequisite_state',
            HINT = 'Redrive or discard the dead letters that they wait for, and let the relay send them, before you go back.';
    END IF;
END
$$;
DROP TABLE outbox.parked, outbox.parked_key;
