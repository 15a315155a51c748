-- Retention: what is done with may be taken away. The rules stand in functions that run as the owner, so that the relay's
-- role deletes nothing else. Only expands: programs built for versions 1 to 4 go on.

-- A pass begins with what has been done with for the longest time.
CREATE INDEX dead_letter_resolved ON outbox.dead_letter (resolved_at) WHERE state IN ('redriven', 'discarded');

CREATE FUNCTION outbox.prune_requests(older_than interval, most integer) RETURNS integer
    LANGUAGE sql SECURITY DEFINER SET search_path = ''
AS $$
    WITH old AS (
        SELECT r.request_id FROM outbox.request AS r
        WHERE r.status = 'completed'
          AND r.completed_at < pg_catalog.clock_timestamp() - GREATEST(older_than, interval '0')
          AND COALESCE(r.dedupe_until < pg_catalog.clock_timestamp(), r.dedupe_key IS NULL)
        ORDER BY r.completed_at LIMIT most FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM outbox.request AS r USING old WHERE r.request_id = old.request_id RETURNING 1
    )
    SELECT pg_catalog.count(*)::integer FROM gone
$$;
COMMENT ON FUNCTION outbox.prune_requests(interval, integer) IS 'Deletes completed requests older than this, at most so many, oldest first: never before dedupe_until has passed, and never one whose dedupe_key holds for ever. Gives their number.';

CREATE FUNCTION outbox.prune_dead_letters(older_than interval, most integer) RETURNS integer
    LANGUAGE sql SECURITY DEFINER SET search_path = ''
AS $$
    WITH old AS (
        SELECT d.id FROM outbox.dead_letter AS d
        WHERE d.state IN ('redriven', 'discarded')
          AND d.resolved_at < pg_catalog.clock_timestamp() - GREATEST(older_than, interval '0')
        ORDER BY d.resolved_at LIMIT most FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM outbox.dead_letter AS d USING old WHERE d.id = old.id RETURNING 1
    )
    SELECT pg_catalog.count(*)::integer FROM gone
$$;
COMMENT ON FUNCTION outbox.prune_dead_letters(interval, integer) IS 'Deletes dead letters that were redriven or discarded longer ago than this, at most so many, oldest first. Gives their number.';

REVOKE ALL ON FUNCTION outbox.prune_requests(interval, integer), outbox.prune_dead_letters(interval, integer) FROM PUBLIC;

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
        EXECUTE pg_catalog.format('GRANT EXECUTE ON FUNCTION outbox.prune_requests(interval, integer), '
                                  'outbox.prune_dead_letters(interval, integer) TO %I', role);
    END LOOP;
END
$$;

INSERT INTO outbox.version (version, oldest_binary) VALUES (5, 1);
