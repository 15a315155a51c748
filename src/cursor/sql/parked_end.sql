-- Released keys of which no row is left are keys like others.
DELETE FROM outbox.parked_key AS k
WHERE k.cursor = $1 AND k.released
    AND NOT EXISTS (SELECT FROM outbox.parked AS p WHERE p.cursor = k.cursor AND p.key = k.key)
