-- Version 20: rows that are still to come late are kept. outbox.safe_to_delete says up to which transaction every cursor has read, and
-- outbox.message_held asks for such rows before it asks for dead letters. Views and functions alone: turns and writers wait for nothing.

CREATE OR REPLACE VIEW outbox.safe_to_delete AS
SELECT n.nspname AS schema, t.relname AS name, l.relays, l.created_at,
       CASE WHEN pg_catalog.count(h.id) = pg_catalog.count(*) AND pg_catalog.min(h.id) = pg_catalog.max(h.id) THEN pg_catalog.min(h.id) END AS id,
       pg_catalog.string_agg(h.held_by, '; ' ORDER BY h.held_by) AS held_by,
       -- What is visible in every one of several snapshots: at least the transactions before the oldest one that was open in any of them.
       (SELECT CASE WHEN pg_catalog.count(*) = pg_catalog.count(s.oldest) THEN pg_catalog.min(s.oldest)::text::xid8 END
        FROM (SELECT CASE WHEN c.swept_column IS NOT NULL AND c.swept_at IS NOT DISTINCT FROM c.advanced_at
                          THEN pg_catalog.pg_snapshot_xmin(c.snapshot)::text::bigint END AS oldest
              FROM outbox.cursor AS c WHERE c.name = ANY (l.relays)) AS s) AS visible_before
FROM (SELECT relation, pg_catalog.array_agg(DISTINCT cursor ORDER BY cursor) AS relays, pg_catalog.min(created_at) AS created_at
      FROM outbox.hold GROUP BY relation) AS l
JOIN outbox.hold AS h ON h.relation = l.relation AND h.created_at = l.created_at
JOIN pg_catalog.pg_class AS t ON t.oid = l.relation
JOIN pg_catalog.pg_namespace AS n ON n.oid = t.relnamespace
GROUP BY n.nspname, t.relname, l.relays, l.created_at;
COMMENT ON VIEW outbox.safe_to_delete IS 'For each table that streams are read from: rows before created_at have been passed by every cursor, and no open dead letter, unknown outcome or requested move back needs them. In a table with a column txid, rows that are still to come late are those from visible_before on. A table without a cursor is not here.';
COMMENT ON COLUMN outbox.safe_to_delete.visible_before IS 'Rows of transactions before it were visible to the last read of every cursor: none of them is still to come late. NULL: of a cursor of the table that is not known, as of each one while the table has no column txid with its index.';

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
    IF thorough THEN
        -- What the last read of a cursor could not see has come below its position afterwards. This is asked first: such a row becomes a
        -- dead letter with the snapshot that sees it, so that the question below finds the one if this one has seen the other.
        FOR h IN SELECT c.name, c.snapshot FROM outbox.cursor AS c WHERE c.snapshot IS NOT NULL
                 AND c.name IN (SELECT o.cursor FROM outbox.hold AS o WHERE o.relation = 'outbox.message'::regclass) LOOP
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
    RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION outbox.keep_parked_keys() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    keys    bigint;
    waiting bigint;
    advice  text;
BEGIN
    IF TG_OP = 'DELETE' THEN
        SELECT count(*), count(*) FILTER (WHERE NOT k.released) INTO keys, waiting FROM outbox.parked_key AS k WHERE k.cursor = OLD.name;
        IF keys > 0 THEN
            IF waiting > 0 THEN
                advice := format('Redrive or discard the dead letters that they wait for: `outbox-relay dead-letter redrive --cursor %1$s` or `outbox-relay dead-letter discard --cursor %1$s`. Then `outbox-relay run --once --relay %2$s` sends the rows, as a running replica does.', OLD.name, OLD.relay);
            ELSE
                advice := format('No dead letter holds them any more: `outbox-relay run --once --relay %s` sends the rows, as a running replica does.', OLD.relay);
            END IF;
            RAISE EXCEPTION 'cursor % has % parked keys', OLD.name, keys USING ERRCODE = 'object_not_in_prerequisite_state',
                HINT = format('Their rows have not been sent. %s To give them up, see what `outbox-relay cursor remove %s --dry-run` prints.', advice, OLD.relay);
        END IF;
        RETURN OLD;
    END IF;
    UPDATE outbox.parked_key AS k SET cursor = NEW.name WHERE k.cursor = OLD.name;
    UPDATE outbox.parked AS p SET cursor = NEW.name WHERE p.cursor = OLD.name;
    RETURN NULL;
END
$$;

INSERT INTO outbox.version (version, oldest_binary) VALUES (20, 1);
