SELECT k.paused, s.halted, s.fingerprint, k.seek_seq, (k.seek_to ->> 'created_at')::timestamptz, k.seek_to ->> 'id',
    k.seek_to ? 'from', (k.seek_to #>> '{from,created_at}')::timestamptz, k.seek_to #>> '{from,id}', k.adopt::text,
    EXISTS (SELECT FROM outbox.dead_letter AS d WHERE d.cursor = n.name AND d.state = 'redriving'), c.base,
    EXISTS (SELECT FROM outbox.parked_key AS p WHERE p.cursor = n.name),
    EXISTS (SELECT FROM outbox.ahead AS a WHERE a.cursor = n.name), s.last_error ->> 'code'
FROM (SELECT $1::text AS name) AS n
LEFT JOIN outbox.control AS k ON k.cursor = n.name
LEFT JOIN outbox.cursor_status AS s ON s.cursor = n.name
LEFT JOIN outbox.turn_progress AS c ON c.cursor = n.name
