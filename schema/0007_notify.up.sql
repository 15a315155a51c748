-- Version 7: hints that rows have come, for relays with [relay.poll] notify = true. The trigger is not made here: it changes
-- the user's table, and `outbox-relay migrate up --notify` makes it where relays ask for it.
CREATE FUNCTION outbox.notify() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- One hint for a transaction, however many statements it has: the server drops what it has been told already.
    PERFORM pg_catalog.pg_notify('outbox_relay', TG_RELID::text);
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION outbox.notify() IS 'Trigger, AFTER INSERT FOR EACH STATEMENT: wakes relays that have notify = true. PostgreSQL lets transactions that notify commit one after another, in all databases of the server, and refuses PREPARE TRANSACTION for them. Lost notifications cost latency, never rows.';
REVOKE ALL ON FUNCTION outbox.notify() FROM PUBLIC;

INSERT INTO outbox.version (version, oldest_binary) VALUES (7, 1);
