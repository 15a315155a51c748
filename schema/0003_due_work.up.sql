-- Due work: who sends which row, what has been sent of tables that are only read, and outcomes that nobody knows. Only
-- expands: programs built for versions 1 and 2 go on.

-- Rows come and go with every send; frequent vacuuming keeps dead versions few.
CREATE TABLE outbox.claim (
    relay      text        NOT NULL,
    key        text[]      NOT NULL,
    due_at     timestamptz NOT NULL,
    state      text        NOT NULL,
    token      text        NOT NULL,
    marked     boolean     NOT NULL DEFAULT false,
    attempts   integer     NOT NULL DEFAULT 0,
    claimed_by text        NOT NULL,
    claimed_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    expires_at timestamptz,
    not_before timestamptz,
    error      jsonb,
    updated_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    PRIMARY KEY (relay, key),
    CONSTRAINT claim_state_known CHECK (state IN ('claimed', 'sending', 'waiting', 'unknown', 'dead')),
    CONSTRAINT claim_expires CHECK (state NOT IN ('claimed', 'sending') OR expires_at IS NOT NULL),
    CONSTRAINT claim_waits CHECK (state <> 'waiting' OR not_before IS NOT NULL)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX claim_unknown ON outbox.claim (relay, updated_at) WHERE state = 'unknown';
CREATE INDEX claim_open ON outbox.claim (relay, expires_at) WHERE state IN ('claimed', 'sending');
COMMENT ON TABLE outbox.claim IS 'Rows of due work that are being sent, wait after a failure, or whose outcome nobody knows. A row that was sent leaves it.';
COMMENT ON COLUMN outbox.claim.relay IS 'The relay that claims.';
COMMENT ON COLUMN outbox.claim.key IS 'The row''s key columns, as text; of a stream its id.';
COMMENT ON COLUMN outbox.claim.due_at IS 'When the row was due at the claim; of a stream its created_at.';
COMMENT ON COLUMN outbox.claim.state IS 'claimed: taken, not sent. sending: sent or about to be (at_most_once). waiting: failed, tried again at not_before. unknown: sent or not, never tried again (at_most_once). dead: put aside in outbox.dead_letter.';
COMMENT ON COLUMN outbox.claim.token IS 'Names the claim: who no longer has this token may neither send nor record anything.';
COMMENT ON COLUMN outbox.claim.marked IS 'The row was marked as sent with its claim (at_most_once): only this claim can still send it.';
COMMENT ON COLUMN outbox.claim.attempts IS 'How often sending it has failed.';
COMMENT ON COLUMN outbox.claim.claimed_by IS 'The replica that claimed it last.';
COMMENT ON COLUMN outbox.claim.claimed_at IS 'When.';
COMMENT ON COLUMN outbox.claim.expires_at IS 'When another replica may take it: its claimant has given up long before, or is gone.';
COMMENT ON COLUMN outbox.claim.not_before IS 'When it is tried again.';
COMMENT ON COLUMN outbox.claim.error IS 'Why it was not sent, or why the outcome is unknown: at, class, code, message, hint.';
COMMENT ON COLUMN outbox.claim.updated_at IS 'When the row was last written.';

CREATE TABLE outbox.sent (
    relay   text        NOT NULL,
    key     text[]      NOT NULL,
    due_at  timestamptz NOT NULL,
    sent_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    sent_by text        NOT NULL,
    PRIMARY KEY (relay, key)
) WITH (autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0.05);
COMMENT ON TABLE outbox.sent IS 'What has been sent of tables and views without a column for it. A row whose due time has moved past due_at is due again.';
COMMENT ON COLUMN outbox.sent.relay IS 'The relay that sent it.';
COMMENT ON COLUMN outbox.sent.key IS 'The row''s key columns, as text.';
COMMENT ON COLUMN outbox.sent.due_at IS 'The due time that it was sent for.';
COMMENT ON COLUMN outbox.sent.sent_at IS 'When it was marked; under at_most_once before it was sent.';
COMMENT ON COLUMN outbox.sent.sent_by IS 'The replica that marked it.';

COMMENT ON COLUMN outbox.cursor.token IS 'What is in flight under at_most_once: {"token": ..., "by": replica, "xid": of its transaction, "rows": [{"id", "created_at"}, ...]}. Whoever finds one that is not his own records its rows as unknown.';

-- Relays that run already need it from their next look on: whoever may write cursors may claim.
DO $$
DECLARE
    role name;
BEGIN
    FOR role IN
        SELECT pg_catalog.pg_get_userbyid(a.grantee)
        FROM pg_catalog.pg_class AS c, pg_catalog.aclexplode(c.relacl) AS a
        WHERE c.oid = 'outbox.cursor'::regclass AND a.privilege_type = 'UPDATE' AND a.grantee NOT IN (0, c.relowner)
    LOOP
        EXECUTE pg_catalog.format('GRANT SELECT, INSERT, UPDATE, DELETE ON outbox.claim, outbox.sent TO %I', role);
    END LOOP;
END
$$;

INSERT INTO outbox.version (version, oldest_binary) VALUES (3, 1);
