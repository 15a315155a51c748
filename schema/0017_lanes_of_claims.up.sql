-- Version 17: rows that become due are sent in lanes ([relay.turn] in_flight with [relay.source.pending]). A claim knows its lane, and
-- the database itself refuses a second one of it.

ALTER TABLE outbox.claim ADD COLUMN lane bigint;
CREATE UNIQUE INDEX claim_lane ON outbox.claim (relay, lane)
    WHERE lane IS NOT NULL AND (state IN ('claimed', 'sending') OR state = 'waiting' AND marked);
COMMENT ON COLUMN outbox.claim.lane IS 'Number of the lane whose rows are sent in order, one at a time; NULL: the relay has no lanes.';

INSERT INTO outbox.version (version, oldest_binary) VALUES (17, 1);
