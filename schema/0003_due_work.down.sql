-- Back to version 2. Marks and claims say what must not be sent again: while there are any, this fails.
-- Programs that run keep out while it looks: one that is under way may have marked a row.
LOCK TABLE outbox.claim, outbox.sent IN ACCESS EXCLUSIVE MODE;
DO $$
BEGIN
    IF EXISTS (SELECT FROM outbox.claim) THEN
        RAISE EXCEPTION 'outbox.claim has rows: let the relays end their work, and settle what is unknown or dead, first';
    END IF;
    IF EXISTS (SELECT FROM outbox.sent) THEN
        RAISE EXCEPTION 'outbox.sent has marks: without them these rows would be sent again; delete them if that is meant';
    END IF;
END
$$;
DROP TABLE outbox.claim;
DROP TABLE outbox.sent;
COMMENT ON COLUMN outbox.cursor.token IS 'Reserved: names what is in flight under at_most_once.';
