UPDATE outbox.cursor AS c
SET seek_applied = COALESCE((SELECT o.seek_seq FROM outbox.control AS o WHERE o.cursor = c.name), 0),
    snapshot = COALESCE($2::text::pg_snapshot, c.snapshot), swept_column = COALESCE($3::smallint, c.swept_column)
WHERE c.name = $1
