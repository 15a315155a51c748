SELECT p.phase, GREATEST(p.blocks_done, 0), GREATEST(p.blocks_total, 0)
FROM pg_catalog.pg_stat_progress_create_index AS p
WHERE p.pid = $1
