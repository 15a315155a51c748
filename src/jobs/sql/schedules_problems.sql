SELECT CASE s.tenant WHEN '' THEN s.name ELSE s.tenant || '/' || s.name END, s.problem
FROM outbox.schedule AS s
WHERE (s.relay = $1 OR s.problem LIKE 'relay_unknown:%') AND s.problem IS NOT NULL
ORDER BY 1 LIMIT 11
