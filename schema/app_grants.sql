GRANT USAGE ON SCHEMA outbox TO :"app_role";
GRANT INSERT (topic, key, payload, headers, traceparent) ON outbox.message TO :"app_role";
GRANT EXECUTE ON FUNCTION outbox.enqueue_once(text, text, text, jsonb, uuid, timestamptz, interval, boolean), outbox.enqueue(text, text, jsonb, uuid, timestamptz) TO :"app_role";
GRANT SELECT, DELETE, INSERT (name, tenant, relay, rule, time_zone, starts_at, ends_at, payload, query, command, missed, overlap, on_interrupted, timeout, enabled), UPDATE (name, tenant, relay, rule, time_zone, starts_at, ends_at, payload, query, command, missed, overlap, on_interrupted, timeout, enabled) ON outbox.schedule TO :"app_role";
GRANT SELECT ON outbox.action TO :"app_role";
GRANT EXECUTE ON FUNCTION outbox.cancel_actions(text, text) TO :"app_role";
