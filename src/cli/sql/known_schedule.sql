-- Whether there is, or was, a schedule of this id, or of this name, alone or behind its tenant.
SELECT EXISTS (
    SELECT FROM outbox.schedule AS s
    WHERE s.schedule_id = $1::bigint OR s.name = $2::text OR s.tenant || '/' || s.name = $2
) OR EXISTS (
    SELECT FROM outbox.action AS a
    WHERE a.schedule_id = $1 OR a.schedule = $2 OR a.tenant || '/' || a.schedule = $2
)
