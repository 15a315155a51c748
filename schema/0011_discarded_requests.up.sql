-- Version 11: operators can give requests up. Such a request is a failed one whose error says so, so that older programs and callers
-- know its status; its relay can be removed, and retention deletes it like a completed one. No table changes.

CREATE OR REPLACE FUNCTION outbox.relay_belongings(of_relay text) RETURNS TABLE (what text, of_cursor text, rows bigint, open bigint)
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
        SELECT 5, q.kind, of_relay, pg_catalog.count(*), pg_catalog.count(*) FILTER (WHERE q.is_open) FROM (
            SELECT CASE WHEN r.status = 'failed' AND r.error ->> 'code' = 'discarded' THEN 'discarded requests'
                        WHEN r.status IN ('failed', 'unknown', 'processing') THEN r.status || ' requests' ELSE 'requests' END AS kind,
                   r.status <> 'completed' AND NOT (r.status = 'failed' AND COALESCE(r.error ->> 'code' = 'discarded', false)) AS is_open
            FROM outbox.request AS r WHERE r.relay = of_relay) AS q GROUP BY q.kind
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

-- A relay with a million discarded requests is measured, listed and pruned as quickly as before.
CREATE INDEX request_failed ON outbox.request (relay) WHERE status = 'failed' AND error ->> 'code' IS DISTINCT FROM 'discarded';
CREATE INDEX request_discarded ON outbox.request (updated_at) WHERE status = 'failed' AND error ->> 'code' = 'discarded';

CREATE OR REPLACE FUNCTION outbox.prune_requests(older_than interval, most integer) RETURNS integer
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    WITH old AS (
        SELECT r.request_id FROM outbox.request AS r
        WHERE r.status = 'completed'
          AND r.completed_at < pg_catalog.statement_timestamp() - GREATEST(older_than, interval '0')
          -- As the index has it; a request whose key holds for ever is not in there, and costs nothing.
          AND (r.dedupe_key IS NULL OR r.dedupe_until IS NOT NULL)
          AND COALESCE(r.dedupe_until < pg_catalog.statement_timestamp(), true)
        ORDER BY r.completed_at LIMIT most FOR UPDATE SKIP LOCKED
    ), given_up AS (
        SELECT r.request_id FROM outbox.request AS r
        WHERE r.status = 'failed' AND r.error ->> 'code' = 'discarded'
          AND r.updated_at < pg_catalog.statement_timestamp() - GREATEST(older_than, interval '0')
          AND (r.dedupe_key IS NULL OR r.dedupe_until IS NOT NULL)
          AND COALESCE(r.dedupe_until < pg_catalog.statement_timestamp(), true)
        ORDER BY r.updated_at LIMIT GREATEST(most - (SELECT pg_catalog.count(*) FROM old), 0) FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM outbox.request AS r USING (TABLE old UNION ALL TABLE given_up) AS d WHERE r.request_id = d.request_id RETURNING 1
    )
    SELECT pg_catalog.count(*)::integer FROM gone
$$ STRICT;
COMMENT ON FUNCTION outbox.prune_requests(interval, integer) IS 'Deletes requests that were completed or given up longer ago than this, at most so many, oldest first: never before dedupe_until has passed, and never one whose dedupe_key holds for ever. Gives their number.';

COMMENT ON COLUMN outbox.request.status IS 'pending: to be sent. processing: a replica has it, or had it when it ended. completed: the receiver has accepted it. failed: it was refused, and no try before can have been accepted; or an operator has given it up (code discarded in error), or found that it has not arrived (settled_lost). unknown: it was sent or not.';

COMMENT ON COLUMN outbox.claim.key IS 'The row''s key columns, as text; of a stream its id. After them its instant, where an earlier row of this key has an unknown outcome.';

INSERT INTO outbox.version (version, oldest_binary) VALUES (11, 1);
