-- Back to version 16, whose programs know no lanes of rows that become due.
DROP INDEX outbox.claim_lane;
ALTER TABLE outbox.claim DROP COLUMN lane;
