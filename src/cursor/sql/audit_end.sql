INSERT INTO outbox.audit_slice (cursor, reads, after_created_at, after_id, up_to_created_at, up_to_id, row_count, sums)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
