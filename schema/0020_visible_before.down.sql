-- Back to version 19. The column visible_before stays, and is NULL: roles keep their rights on the view, and a job that asks for it deletes
-- nothing.
COMMENT ON VIEW outbox.safe_to_delete IS 'For each table that streams are read from: rows before created_at have been passed by every cursor, and no open dead letter, unknown outcome or wish to move back needs them. A table without a cursor is not here.';
COMMENT ON COLUMN outbox.safe_to_delete.visible_before IS 'Of a later version; always NULL.';
CREATE OR REPLACE VIEW outbox.safe_to_delete AS
SELECT n.nspname AS schema, t.relname AS name, l.relays, l.created_at,
       CASE WHEN pg_catalog.count(h.id) = pg_catalog.count(*) AND pg_catalog.min(h.id) = pg_catalog.max(h.id) THEN pg_catalog.min(h.id) END AS id,
       pg_catalog.string_agg(h.held_by, '; ' ORDER BY h.held_by) AS held_by,
       NULL::xid8 AS visible_before
FROM (SELECT relation, pg_catalog.array_agg(DISTINCT cursor ORDER BY cursor) AS relays, pg_catalog.min(created_at) AS created_at
      FROM outbox.hold GROUP BY relation) AS l
JOIN outbox.hold AS h ON h.relation = l.relation AND h.created_at = l.created_at
JOIN pg_catalog.pg_class AS t ON t.oid = l.relation
JOIN pg_catalog.pg_namespace AS n ON n.oid = t.relnamespace
GROUP BY n.nspname, t.relname, l.relays, l.created_at;

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

CREATE OR REPLACE FUNCTION outbox.keep_parked_keys() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    keys bigint;
BEGIN
    IF TG_OP = 'DELETE' THEN
        SELECT count(*) INTO keys FROM outbox.parked_key AS k WHERE k.cursor = OLD.name;
        IF keys > 0 THEN
            RAISE EXCEPTION 'cursor % has % parked keys', OLD.name, keys USING ERRCODE = 'object_not_in_prerequisite_state',
                HINT = format('Their rows have not been sent. `outbox-relay dead-letter list --cursor %s` names what they wait for: redrive or discard it, and let the relay send them first.', OLD.name);
        END IF;
        RETURN OLD;
    END IF;
    UPDATE outbox.parked_key AS k SET cursor = NEW.name WHERE k.cursor = OLD.name;
    UPDATE outbox.parked AS p SET cursor = NEW.name WHERE p.cursor = OLD.name;
    RETURN NULL;
END
$$;
