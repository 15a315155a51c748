-- Version 9: a cursor knows the horizon rule that its position rests on, so that a weaker one is noticed, also by a replica
-- that starts after the change.
ALTER TABLE outbox.cursor ADD COLUMN rule text, ADD COLUMN open_since timestamptz,
    ADD CONSTRAINT cursor_rule_known CHECK (rule IN ('writers', 'transactions', 'window'));
COMMENT ON COLUMN outbox.cursor.rule IS 'The horizon rule under which the cursor last advanced, or was created.';
COMMENT ON COLUMN outbox.cursor.open_since IS 'No transaction of this database that was open at the last advance, or began later, has an earlier start; NULL: not known, or not needed under this rule. When the default of created_at becomes now(), the position goes back to it.';

INSERT INTO outbox.version (version, oldest_binary) VALUES (9, 1);
