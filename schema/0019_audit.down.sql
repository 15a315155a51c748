-- Back to version 18, whose programs do not compare what they have passed with the table.
ALTER TABLE outbox.cursor DROP COLUMN position_columns, DROP COLUMN audit;
DROP TRIGGER rename_audit ON outbox.cursor;
DROP TRIGGER delete_audit ON outbox.cursor;
DROP FUNCTION outbox.follow_audit();
DROP TABLE outbox.audit_slice;
