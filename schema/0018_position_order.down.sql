-- Back to version 17, whose programs do not record by what positions are compared.
ALTER TABLE outbox.cursor DROP COLUMN position_order;
