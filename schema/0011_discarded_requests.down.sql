-- Back to version 10: requests that were given up are failed ones to it.
COMMENT ON COLUMN outbox.request.status IS 'pending: to be sent. processing: a replica has it, or had it when it ended. completed: the receiver has accepted it. failed: it was refused, and no try before can have been accepted. unknown: it was sent or not, nobody knows.';

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
        SELECT 5, CASE r.status WHEN 'unknown' THEN 'unknown requests' WHEN 'failed' THEN 'failed requests' ELSE 'requests' END,
            of_relay, pg_catalog.count(*), pg_catalog.count(*) FILTER (WHERE r.status <> 'completed')
        FROM outbox.request AS r WHERE r.relay = of_relay GROUP BY 2
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
    ), gone AS (
        DELETE FROM outbox.request AS r USING old WHERE r.request_id = old.request_id RETURNING 1
    )
    SELECT pg_catalog.count(*)::integer FROM gone
$$ STRICT;
COMMENT ON FUNCTION outbox.prune_requests(interval, integer) IS 'Deletes completed requests older than this, at most so many, oldest first: never before dedupe_until has passed, and never one whose dedupe_key holds for ever. Gives their number.';

COMMENT ON COLUMN outbox.claim.key IS 'The row''s key columns, as text; of a stream its id.';

DROP INDEX outbox.request_failed;
DROP INDEX outbox.request_discarded;
