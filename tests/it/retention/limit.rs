//! `prune` at its limit, and a pass of `run` at the end of the grace period: what is gone is told and noted, whatever is under way.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use tokio_postgres::Client;

use super::TIMES;
use crate::support::outside::{json, lines, stdout_relay};
use crate::support::proxy::{Cut, Proxy};
use crate::support::relays::toml_of;
use crate::support::{Database, PATIENCE, Process, bookings, database, eventually, outbox_relay, toml};

/// Two old requests and two old letters.
const OLD: &str = "
    INSERT INTO outbox.request (request_id, user_id, template, parameters, relay, status, holds_key, not_before, token,
        claimed_by, expires_at, completed_at, updated_at)
    SELECT gen_random_uuid(), 'u', 't', '{}', 'r', 'completed', false, now(), 'x', 'x', now(), now() - interval '100 days',
        now() - interval '100 days' FROM generate_series(1, 2);
    INSERT INTO outbox.dead_letter (cursor, source, created_at, message_id, sink, target, fields, field_values, error,
        state, dead_lettered_at, dead_lettered_by, resolved_at)
    SELECT 'c', 'public.t', now(), n::text, 'http', 'x', '{}', '{}', '{}', 'redriven', now() - interval '200 days', 'x',
        now() - interval '100 days' FROM generate_series(1, 2) AS n";

/// Makes each DELETE of letters take ten minutes.
const SLOW: &str = "
    CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(600); RETURN NULL; END';
    CREATE TRIGGER slow AFTER DELETE ON outbox.dead_letter FOR EACH STATEMENT EXECUTE FUNCTION slow()";

async fn stage(more: &str) -> (Database, Client) {
    let database = database().await;
    let owner = database.connect("postgres").await;
    owner.batch_execute(&format!("{OLD}; {more}")).await.unwrap();
    (database, owner)
}

async fn count(owner: &Client, sql: &str) -> i64 {
    owner.query_one(sql, &[]).await.unwrap().get(0)
}

/// What the last note of a prune says is gone.
async fn noted(owner: &Client) -> Vec<(String, i64)> {
    let sql = "SELECT p ->> 'what', (p ->> 'rows')::bigint FROM outbox.operation, jsonb_array_elements(detail -> 'pruned') AS p \
               WHERE verb = 'prune' ORDER BY at, p";
    owner.query(sql, &[]).await.unwrap().iter().map(|row| (row.get(0), row.get(1))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn batch_longer_than_limit_is_ended_and_what_is_gone_is_noted() {
    let (database, owner) = stage(SLOW).await;
    let text = toml(&database, "relay", None, TIMES);
    let begun = Instant::now();
    let (code, out, log) = outbox_relay(&text, &["prune", "--yes", "--timeout", "3s"]).await;
    assert_eq!(code, Some(1), "{out}{log}");
    assert!(begun.elapsed() < PATIENCE * 2, "{:?}", begun.elapsed());
    assert!(out.ends_with("completed_requests outbox.request: 2 gone\n"), "{out}{log}");
    let says = "dead_letters outbox.dead_letter: a statement did not end within the limit; the next prune goes on there\n\
                error: the limit of 3s (--timeout) was reached: what is printed above was pruned, more may be left; run prune again\n";
    assert_eq!(log, says);
    assert_eq!(noted(&owner).await, [("completed_requests".to_owned(), 2)]);
    let left = "SELECT count(*) FROM outbox.dead_letter";
    assert_eq!(count(&owner, left).await, 2);
    let sleeping = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%prune_dead%' \
                    AND pid <> pg_backend_pid() AND state = 'active'";
    assert_eq!(count(&owner, sleeping).await, 0, "PostgreSQL has ended it");
}

#[tokio::test(flavor = "multi_thread")]
async fn server_that_falls_silent_leaves_report_of_what_is_gone() {
    let (database, owner) = stage("").await;
    let direct = database.postgres.port();
    let proxy = Proxy::start_at(direct, Cut::Silent, b"prune_dead_letters").await;
    let url = database.url("relay").replace(&format!(":{direct}/"), &format!(":{}/", proxy.port));
    let text = toml_of(url.trim_end_matches("?sslmode=disable"), None, TIMES);
    let (code, out, log) = outbox_relay(&text, &["prune", "--yes", "--timeout", "2s", "-o", "json"]).await;
    assert_eq!((code, proxy.cuts()), (Some(1), 1), "{out}{log}");
    let requests = &json(&out)["prune"][0];
    assert_eq!((&requests["key"][0], &requests["pruned"]), (&"completed_requests".into(), &2.into()), "{out}");
    let says = "error: the limit of 2s (--timeout) was reached; PostgreSQL does not answer: the last statement may take effect or \
                not: what is printed above was pruned, more may be left; run prune again\n";
    assert_eq!(log, says);
    // Noted all the same, by another session.
    assert_eq!(noted(&owner).await, [("completed_requests".to_owned(), 2)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn owner_stops_dropping_partitions_at_limit() {
    let (database, owner) = stage(
        "SET timezone = 'UTC'; SELECT outbox.partition_messages(); \
         DO $$ BEGIN FOR d IN 10 .. 15 LOOP EXECUTE format('CREATE TABLE outbox.message_%s PARTITION OF outbox.message FOR VALUES \
         FROM (%L) TO (%L)', to_char(now() - d * interval '1 day', 'YYYYMMDD'), now()::date - d, now()::date - d + 1); END LOOP; \
         END $$; \
         CREATE FUNCTION slow() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(1.5); END'; \
         CREATE EVENT TRIGGER slow ON sql_drop WHEN TAG IN ('DROP TABLE') EXECUTE FUNCTION slow()",
    )
    .await;
    let relay = stdout_relay("m", "").replace("public.bookings", "outbox.message");
    let text = toml(&database, "postgres", None, &format!("[retention]\nmessages = \"7d\"\nevery = \"1h\"\n{relay}"));
    let (code, _, log) = outbox_relay(&text, &["cursor", "create", "m", "--now"]).await;
    assert_eq!(code, Some(0), "{log}");
    let (code, out, log) = outbox_relay(&text, &["prune", "--yes", "--timeout", "3s"]).await;
    assert_eq!(code, Some(1), "{out}{log}");
    let gone = out.lines().filter(|line| line.starts_with("messages message_") && line.ends_with(": 1 gone")).count();
    assert!((1..=4).contains(&gone), "{out}{log}");
    assert!(log.contains("error: the limit of 3s (--timeout) was reached"), "{log}");
    assert_eq!(noted(&owner).await.len(), gone);
    let left = "SELECT count(*) FROM outbox.message_partition WHERE upper < now() - interval '7 days'";
    assert_eq!(count(&owner, left).await, 6 - i64::try_from(gone).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_batch_does_not_outlive_grace_period() {
    let (database, owner) = stage(SLOW).await;
    bookings(&database, crate::support::CLOCK).await;
    let relay = stdout_relay("r", "");
    let text = toml(&database, "relay", None, &format!("{TIMES}[shutdown]\ngrace = \"1s\"\n{relay}"));
    let mut process = Process::spawn(&text, &["run"]);
    let sleeping = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep' \
                    AND query LIKE '%prune_dead_letters%'";
    eventually(PATIENCE, async || count(&owner, sleeping).await == 1).await;
    process.signal(Signal::TERM);
    let code = tokio::time::timeout(Duration::from_secs(20), process.wait()).await;
    assert_eq!(code.ok(), Some(Some(0)), "{}", process.log());
    let pruned = |line: &serde_json::Value| line["message"] == "pruned" && line["rows"] == 2;
    assert!(lines(&process).iter().any(pruned), "{}", process.log());
    assert!(process.log().contains("retention was cut at the end of the grace period"), "{}", process.log());
}
