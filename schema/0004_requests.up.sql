-- Requests that are sent once: the ledger, and the functions that producers in any language call in their own transaction.
-- Only expands: programs built for versions 1 to 3 go on.

CREATE TABLE outbox.template (
    name          text        NOT NULL PRIMARY KEY,
    relay         text        NOT NULL,
    registered_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    registered_by text        NOT NULL DEFAULT session_user
);
COMMENT ON TABLE outbox.template IS 'Templates that can be requested, and the relay that sends each. Relays write them here when they start; `migrate up` does, too.';
COMMENT ON COLUMN outbox.template.name IS 'The template''s name, as in the configuration.';
COMMENT ON COLUMN outbox.template.relay IS 'The relay that renders and sends it.';
COMMENT ON COLUMN outbox.template.registered_at IS 'Since when it is known.';
COMMENT ON COLUMN outbox.template.registered_by IS 'The role that made it known.';

-- Rows are written when they are claimed and when they are settled; frequent vacuuming keeps dead versions few.
CREATE TABLE outbox.request (
    request_id     uuid        NOT NULL PRIMARY KEY,
    dedupe_key     text,
    holds_key      boolean     NOT NULL,
    dedupe_until   timestamptz,
    user_id        text        NOT NULL,
    template       text        NOT NULL,
    parameters     jsonb       NOT NULL,
    relay          text        NOT NULL,
    status         text        NOT NULL DEFAULT 'pending',
    due_at         timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    not_before     timestamptz NOT NULL,
    attempts       integer     NOT NULL DEFAULT 0,
    ambiguous      integer     NOT NULL DEFAULT 0,
    token          text,
    claimed_by     text,
    claimed_at     timestamptz,
    expires_at     timestamptz,
    first_tried_at timestamptz,
    body           bytea,
    body_hash      bytea,
    provider_id    text,
    reply          text,
    error          jsonb,
    created_at     timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    updated_at     timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    completed_at   timestamptz,
    CONSTRAINT request_status_known CHECK (status IN ('pending', 'processing', 'completed', 'failed', 'unknown')),
    CONSTRAINT request_parameters_object CHECK (pg_catalog.jsonb_typeof(parameters) = 'object'),
    CONSTRAINT request_processing_claimed CHECK (status <> 'processing' OR token IS NOT NULL AND claimed_by IS NOT NULL AND expires_at IS NOT NULL),
    CONSTRAINT request_completed CHECK ((status = 'completed') = (completed_at IS NOT NULL)),
    CONSTRAINT request_holds_key CHECK (NOT holds_key OR dedupe_key IS NOT NULL)
) WITH (autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE UNIQUE INDEX request_dedupe_key ON outbox.request (dedupe_key) WHERE holds_key;
CREATE INDEX request_pending ON outbox.request (relay, not_before, request_id) WHERE status = 'pending';
CREATE INDEX request_retrying ON outbox.request (relay, due_at) WHERE status = 'pending' AND attempts > 0;
CREATE INDEX request_processing ON outbox.request (relay, expires_at) WHERE status = 'processing';
CREATE INDEX request_attention ON outbox.request (relay, updated_at) WHERE status IN ('failed', 'unknown');
-- What may be pruned once it is old: a key that holds for ever keeps its request.
CREATE INDEX request_completed_at ON outbox.request (completed_at) WHERE status = 'completed' AND (dedupe_key IS NULL OR dedupe_until IS NOT NULL);
COMMENT ON TABLE outbox.request IS 'The ledger: who asked for what to be sent to whom, and what became of it. Written by outbox.enqueue and outbox.enqueue_once, then by the relay.';
COMMENT ON COLUMN outbox.request.request_id IS 'Names the request, and is its message id for the receiver: a UUID of version 7, unless the caller brought one.';
COMMENT ON COLUMN outbox.request.dedupe_key IS 'What is sent once: the caller''s words, for example user and template. NULL: not asked for.';
COMMENT ON COLUMN outbox.request.holds_key IS 'Callers with this key get this request. False once dedupe_until has passed and another request has taken the key.';
COMMENT ON COLUMN outbox.request.dedupe_until IS 'Until when callers with this key get this request, and for as long as it has not ended; NULL is for ever.';
COMMENT ON COLUMN outbox.request.user_id IS 'Whom it is for, in the caller''s words.';
COMMENT ON COLUMN outbox.request.template IS 'What is to be sent.';
COMMENT ON COLUMN outbox.request.parameters IS 'The values that the template prints: a JSON object.';
COMMENT ON COLUMN outbox.request.relay IS 'The relay that sends it.';
COMMENT ON COLUMN outbox.request.status IS 'pending: to be sent. processing: a replica has it, or had it when it ended. completed: the receiver has accepted it. failed: it was refused, and no try before can have been accepted. unknown: it was sent or not, nobody knows.';
COMMENT ON COLUMN outbox.request.due_at IS 'When it is to be sent.';
COMMENT ON COLUMN outbox.request.not_before IS 'The same; after a failure, when it is tried again.';
COMMENT ON COLUMN outbox.request.attempts IS 'How many tries have ended without success since it was last made pending.';
COMMENT ON COLUMN outbox.request.ambiguous IS 'How many tries had an outcome that nobody knows; kept when it is sent again.';
COMMENT ON COLUMN outbox.request.token IS 'Names the claim: who no longer has this token may neither send nor record anything.';
COMMENT ON COLUMN outbox.request.claimed_by IS 'The replica that claimed it last.';
COMMENT ON COLUMN outbox.request.claimed_at IS 'When.';
COMMENT ON COLUMN outbox.request.expires_at IS 'When another replica may take it up: its claimant has given up long before, or is gone.';
COMMENT ON COLUMN outbox.request.first_tried_at IS 'Since when the receiver may know its idempotency key; NULL while it certainly does not.';
COMMENT ON COLUMN outbox.request.body IS 'What is sent, rendered before the first try and the same for each; emptied when the request is completed.';
COMMENT ON COLUMN outbox.request.body_hash IS 'SHA-256 of it, as it was pinned; kept when the body is emptied.';
COMMENT ON COLUMN outbox.request.provider_id IS 'The receiver''s own id of the message; of an e-mail its Message-ID.';
COMMENT ON COLUMN outbox.request.reply IS 'What the receiver said when it accepted it.';
COMMENT ON COLUMN outbox.request.error IS 'Why it was not sent, or why the outcome is unknown: at, class, code, message, hint.';
COMMENT ON COLUMN outbox.request.created_at IS 'When it was asked for.';
COMMENT ON COLUMN outbox.request.updated_at IS 'When the row was last written.';
COMMENT ON COLUMN outbox.request.completed_at IS 'When the receiver''s acceptance was recorded.';

-- PostgreSQL has a function of its own from version 18 on. RFC 9562, section 5.7: 48 bits of Unix milliseconds, then random
-- ones around version and variant, which a random UUID of version 4 has in the right places already.
CREATE FUNCTION outbox.uuid7() RETURNS uuid
    LANGUAGE sql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT (pg_catalog.lpad(pg_catalog.to_hex(pg_catalog.floor(EXTRACT(EPOCH FROM pg_catalog.clock_timestamp()) * 1000)::bigint), 12, '0')
            || '7' || pg_catalog.substr(pg_catalog.replace(pg_catalog.gen_random_uuid()::text, '-', ''), 14))::uuid
$$;
COMMENT ON FUNCTION outbox.uuid7() IS 'A UUID of version 7: sorts by the millisecond in which it was made.';

CREATE FUNCTION outbox.make_request(
    once          boolean,
    dedupe_key    text,
    user_id       text,
    template      text,
    parameters    jsonb,
    INOUT request_id uuid,
    not_before    timestamptz,
    dedupe_for    interval,
    retry_failed  boolean,
    OUT status        text,
    OUT already_sent  boolean
)
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    key   CONSTANT text  := make_request.dedupe_key;
    given CONSTANT uuid  := make_request.request_id;
    what  CONSTANT jsonb := COALESCE(make_request.parameters, '{}');
    start CONSTANT timestamptz := COALESCE(make_request.not_before, pg_catalog.clock_timestamp());
    there outbox.request%ROWTYPE;
    sender text;
    known text;
BEGIN
    IF COALESCE(make_request.user_id, '') = '' THEN
        RAISE EXCEPTION 'user_id is missing' USING ERRCODE = 'OX004', HINT = 'Name the user that the message is for.';
    END IF;
    IF key IS NULL AND once THEN
        RAISE EXCEPTION 'dedupe_key is NULL' USING ERRCODE = 'OX004',
            HINT = 'Say what is to be sent once, for example user and template; outbox.enqueue sends each time.';
    END IF;
    IF key = '' OR pg_catalog.octet_length(key) > 1024 THEN
        RAISE EXCEPTION 'dedupe_key has % bytes', pg_catalog.octet_length(key)
            USING ERRCODE = 'OX004', HINT = 'A key has 1 to 1024 bytes; hash longer ones.';
    END IF;
    IF pg_catalog.octet_length(make_request.user_id) > 1024 OR pg_catalog.octet_length(what::text) > 1048576 THEN
        RAISE EXCEPTION 'user_id has % bytes and parameters have %', pg_catalog.octet_length(make_request.user_id),
            pg_catalog.octet_length(what::text)
            USING ERRCODE = 'OX004', HINT = 'They have at most 1024 and 1048576; pass a reference to what is larger.';
    END IF;
    IF pg_catalog.jsonb_typeof(what) <> 'object' THEN
        RAISE EXCEPTION 'parameters are a JSON %, an object is needed', pg_catalog.jsonb_typeof(what)
            USING ERRCODE = 'OX004', HINT = 'Write for example {"name": "Ada"}.';
    END IF;
    IF make_request.dedupe_for <= interval '0' THEN
        RAISE EXCEPTION 'dedupe_for is not above zero' USING ERRCODE = 'OX004',
            HINT = 'Leave it out to remember the key for ever.';
    END IF;
    IF NOT pg_catalog.isfinite(start) THEN
        RAISE EXCEPTION 'not_before is infinite' USING ERRCODE = 'OX004', HINT = 'Leave it out to send at once.';
    END IF;
    SELECT t.relay INTO sender FROM outbox.template AS t WHERE t.name = make_request.template;
    IF sender IS NULL THEN
        SELECT pg_catalog.string_agg(t.name, ', ' ORDER BY t.name) INTO known
        FROM (SELECT n.name FROM outbox.template AS n ORDER BY n.name LIMIT 20) AS t;
        RAISE EXCEPTION 'unknown template "%"', make_request.template USING ERRCODE = 'OX001',
            HINT = pg_catalog.format('Known: %s. A relay makes its templates known when it starts, `outbox-relay migrate up` does, too.',
                                     COALESCE(known, 'none'));
    END IF;
    -- Each round looks with a new snapshot; more than two are needed only beside callers that change the same request.
    FOR round IN 1 .. 100 LOOP
        -- One after the other: each is one step into an index, whatever the session's settings.
        SELECT r.* INTO there FROM outbox.request AS r WHERE r.request_id = given;
        IF NOT FOUND THEN
            SELECT r.* INTO there FROM outbox.request AS r WHERE r.dedupe_key = key AND r.holds_key;
        END IF;
        IF NOT FOUND THEN
            INSERT INTO outbox.request AS r (request_id, dedupe_key, holds_key, dedupe_until, user_id, template, parameters, relay, due_at, not_before)
            VALUES (COALESCE(given, outbox.uuid7()), key, key IS NOT NULL, pg_catalog.clock_timestamp() + make_request.dedupe_for,
                    make_request.user_id, make_request.template, what, sender, start, start)
            -- Waits for a caller that is about to make the same one.
            ON CONFLICT DO NOTHING
            RETURNING r.request_id, r.status, false INTO request_id, status, already_sent;
            IF FOUND THEN
                RETURN;
            END IF;
            CONTINUE;
        END IF;
        -- Who brings a request's id means that request, whatever has become of its key.
        IF there.request_id IS DISTINCT FROM given AND there.dedupe_until <= pg_catalog.clock_timestamp()
           AND there.status IN ('completed', 'failed') THEN
            UPDATE outbox.request AS r SET holds_key = false, updated_at = pg_catalog.clock_timestamp()
            WHERE r.request_id = there.request_id AND r.holds_key AND r.status IN ('completed', 'failed');
            CONTINUE;
        END IF;
        IF there.user_id IS DISTINCT FROM make_request.user_id OR there.template IS DISTINCT FROM make_request.template
           OR there.parameters IS DISTINCT FROM what OR there.dedupe_key IS DISTINCT FROM key THEN
            RAISE EXCEPTION '%', CASE WHEN there.request_id = given
                                      THEN pg_catalog.format('request %s exists with another body', given)
                                      ELSE pg_catalog.format('dedupe_key "%s" belongs to request %s, which has another body', key, there.request_id) END
                USING ERRCODE = 'OX002',
                      DETAIL = pg_catalog.concat_ws(', ',
                          CASE WHEN there.user_id IS DISTINCT FROM make_request.user_id THEN 'user_id differs' END,
                          CASE WHEN there.template IS DISTINCT FROM make_request.template THEN 'template differs' END,
                          CASE WHEN there.parameters IS DISTINCT FROM what THEN 'parameters differ' END,
                          CASE WHEN there.dedupe_key IS DISTINCT FROM key THEN 'dedupe_key differs' END),
                      HINT = 'Send the same body again, or another key for another message.';
        END IF;
        -- A request whose key another has taken since stays as it is: both would be sent.
        IF there.status = 'failed' AND make_request.retry_failed AND (there.holds_key OR there.dedupe_key IS NULL) THEN
            -- What may have been sent once keeps its body: the receiver may know its key.
            UPDATE outbox.request AS r
            SET status = 'pending', due_at = start, not_before = start, attempts = 0, error = NULL,
                body = CASE WHEN r.ambiguous > 0 THEN r.body END, body_hash = CASE WHEN r.ambiguous > 0 THEN r.body_hash END,
                first_tried_at = CASE WHEN r.ambiguous > 0 THEN r.first_tried_at END, relay = sender,
                updated_at = pg_catalog.clock_timestamp()
            WHERE r.request_id = there.request_id AND r.status = 'failed' AND (r.holds_key OR r.dedupe_key IS NULL)
            RETURNING r.request_id, r.status, false INTO request_id, status, already_sent;
            IF FOUND THEN
                RETURN;
            END IF;
            CONTINUE;
        END IF;
        request_id := there.request_id;
        status := there.status;
        already_sent := there.status = 'completed';
        RETURN;
    END LOOP;
    RAISE EXCEPTION 'request cannot be there nor made: others change it all the time' USING ERRCODE = 'serialization_failure',
        HINT = 'Try the transaction again.';
END
$$;
COMMENT ON FUNCTION outbox.make_request(boolean, text, text, text, jsonb, uuid, timestamptz, interval, boolean) IS 'What outbox.enqueue and outbox.enqueue_once do; nobody else calls it.';

CREATE FUNCTION outbox.enqueue_once(
    dedupe_key    text,
    user_id       text,
    template      text,
    parameters    jsonb       DEFAULT '{}',
    INOUT request_id uuid     DEFAULT NULL,
    not_before    timestamptz DEFAULT NULL,
    dedupe_for    interval    DEFAULT NULL,
    retry_failed  boolean     DEFAULT false,
    OUT status        text,
    OUT already_sent  boolean
)
    LANGUAGE sql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT m.request_id, m.status, m.already_sent
    FROM outbox.make_request(true, enqueue_once.dedupe_key, enqueue_once.user_id, enqueue_once.template, enqueue_once.parameters,
                             enqueue_once.request_id, enqueue_once.not_before, enqueue_once.dedupe_for, enqueue_once.retry_failed) AS m
$$;
COMMENT ON FUNCTION outbox.enqueue_once(text, text, text, jsonb, uuid, timestamptz, interval, boolean) IS
    'Asks for a template to be sent to a user, once for a dedupe_key, in the caller''s transaction. Gives the request, a new one (pending) or the one that is there; already_sent: it is completed. A failed one is sent again only with retry_failed. Errors: OX001 unknown template, OX002 same key or id with another body, OX004 unusable argument.';

CREATE FUNCTION outbox.enqueue(
    user_id     text,
    template    text,
    parameters  jsonb       DEFAULT '{}',
    request_id  uuid        DEFAULT NULL,
    not_before  timestamptz DEFAULT NULL
) RETURNS uuid
    LANGUAGE sql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT e.request_id
    FROM outbox.make_request(false, NULL, enqueue.user_id, enqueue.template, enqueue.parameters, enqueue.request_id,
                             enqueue.not_before, NULL, false) AS e
$$;
COMMENT ON FUNCTION outbox.enqueue(text, text, jsonb, uuid, timestamptz) IS
    'Asks for a template to be sent to a user, in the caller''s transaction; every call is a request of its own, unless it brings the request_id of one that is there. Gives the request_id.';

REVOKE ALL ON FUNCTION outbox.make_request(boolean, text, text, text, jsonb, uuid, timestamptz, interval, boolean) FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.enqueue_once(text, text, text, jsonb, uuid, timestamptz, interval, boolean) FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.enqueue(text, text, jsonb, uuid, timestamptz) FROM PUBLIC;

-- Relays that run already need it from their next look on: whoever may write cursors may work off requests.
DO $$
DECLARE
    role name;
BEGIN
    FOR role IN
        SELECT pg_catalog.pg_get_userbyid(a.grantee)
        FROM pg_catalog.pg_class AS c, pg_catalog.aclexplode(c.relacl) AS a
        WHERE c.oid = 'outbox.cursor'::regclass AND a.privilege_type = 'UPDATE' AND a.grantee NOT IN (0, c.relowner)
    LOOP
        EXECUTE pg_catalog.format('GRANT SELECT, INSERT ON outbox.template TO %I', role);
        EXECUTE pg_catalog.format('GRANT SELECT, UPDATE ON outbox.request TO %I', role);
        EXECUTE pg_catalog.format('GRANT EXECUTE ON FUNCTION outbox.enqueue_once(text, text, text, jsonb, uuid, timestamptz, interval, boolean), outbox.enqueue(text, text, jsonb, uuid, timestamptz) TO %I', role);
    END LOOP;
END
$$;

INSERT INTO outbox.version (version, oldest_binary) VALUES (4, 1);
