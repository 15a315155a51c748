GRANT USAGE ON SCHEMA outbox TO :"app_role";
GRANT INSERT ON outbox.message TO :"app_role";
GRANT EXECUTE ON FUNCTION outbox.enqueue_once(text, text, text, jsonb, uuid, timestamptz, interval, boolean), outbox.enqueue(text, text, jsonb, uuid, timestamptz) TO :"app_role";
