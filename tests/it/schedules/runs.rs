//! Actions: missed ones, overlapping ones, interrupted ones.

use std::time::Duration;

use outbox_testkit::provider::{Answer, Provider};
use rustix::process::Signal;

use super::{clients, having, relay};
use crate::support::outside::{line, lines};
use crate::support::receiver::Receiver;
use crate::support::{PATIENCE, Process, database, eventually, outbox_relay, toml};

// Guarantee: schedules.missed-policy
#[tokio::test(flavor = "multi_thread")]
async fn three_occurrences_missed_while_nobody_was_there_give_three_one_or_none() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|_| Answer::Accept).await.unwrap();
    let text = toml(&database, "relay", None, &relay(&provider, "", ""));
    for missed in ["all", "latest", "none"] {
        let sql = "INSERT INTO outbox.schedule (name, relay, rule, starts_at, missed) \
                   VALUES ($1, 'jobs', 'FREQ=SECONDLY;COUNT=3', date_trunc('second', clock_timestamp()) + interval '2 seconds', $1)";
        app.execute(sql, &[&missed]).await.unwrap();
    }
    let past = "SELECT bool_and(starts_at + interval '3500 milliseconds' < clock_timestamp()) FROM outbox.schedule";
    eventually(PATIENCE, async || owner.query_one(past, &[]).await.unwrap().get(0)).await;
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!(code, Some(0), "{log}");
    for (missed, expected) in [("all", 3), ("latest", 1), ("none", 0)] {
        assert_eq!(having(&owner, missed, "completed").await, expected, "{missed}: {log}");
    }
    let next = "SELECT bool_and(next_at = 'infinity') FROM outbox.schedule";
    assert!(owner.query_one(next, &[]).await.unwrap().get::<_, bool>(0));
}

// Guarantee: schedules.overlap
#[tokio::test(flavor = "multi_thread")]
async fn an_occurrence_that_overlaps_is_skipped_and_counted_or_queued() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|_| Answer::Late(Duration::from_millis(700))).await.unwrap();
    let text = toml(&database, "relay", None, &relay(&provider, "", ""));
    app.batch_execute(
        "INSERT INTO outbox.schedule (name, relay, rule, overlap) VALUES ('skips', 'jobs', 'FREQ=SECONDLY', 'skip'), \
         ('queues', 'jobs', 'FREQ=SECONDLY', 'queue'); \
         SELECT outbox.make_action(s, clock_timestamp() - i * interval '10 milliseconds', false, false, '{}') \
         FROM outbox.schedule AS s, generate_series(3, 1, -1) AS i",
    )
    .await
    .unwrap_err();
    owner
        .batch_execute(
            "INSERT INTO outbox.schedule (name, relay, starts_at, overlap) VALUES ('skips', 'jobs', 'infinity', 'skip'), \
             ('queues', 'jobs', 'infinity', 'queue'); \
             SELECT outbox.make_action(s, clock_timestamp() - i * interval '10 milliseconds', false, false, '{}') \
             FROM outbox.schedule AS s, generate_series(3, 1, -1) AS i",
        )
        .await
        .unwrap();
    let _process = Process::spawn(&text, &["run"]);
    eventually(PATIENCE * 2, async || having(&owner, "queues", "completed").await == 3).await;
    eventually(PATIENCE, async || having(&owner, "skips", "completed").await == 1).await;
    assert_eq!(having(&owner, "skips", "skipped").await, 2);
    // One after the other, in the order of their instants.
    let sql = "SELECT count(*) FROM outbox.action AS a JOIN outbox.action AS b ON a.schedule = 'queues' AND b.schedule = 'queues' \
               AND a.planned_at < b.planned_at AND b.started_at < a.finished_at";
    assert_eq!(owner.query_one(sql, &[]).await.unwrap().get::<_, i64>(0), 0);
}

// Guarantee: schedules.killed-action
#[tokio::test(flavor = "multi_thread")]
async fn an_action_whose_replica_was_killed_is_tried_again_or_has_failed_as_its_schedule_says() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|_| Answer::Hang).await.unwrap();
    let text = toml(&database, "relay", None, &relay(&provider, "", ""))
        .replace("timeout = \"1s\"", "timeout = \"20s\"")
        .replace("deadline = \"2s\"", "deadline = \"40s\"");
    let mut first = Process::spawn(&text, &["run"]);
    app.batch_execute(
        "INSERT INTO outbox.schedule (name, relay, starts_at, on_interrupted) VALUES ('retries', 'jobs', now(), 'retry'), \
         ('fails', 'jobs', now(), 'fail')",
    )
    .await
    .unwrap();
    eventually(PATIENCE, async || provider.count() == 2).await;
    first.signal(Signal::KILL);
    first.wait().await;
    provider.decide(|_| Answer::Accept);
    let _second = Process::spawn(&text, &["run"]);
    eventually(PATIENCE * 3, async || having(&owner, "retries", "completed").await == 1).await;
    assert_eq!(having(&owner, "fails", "failed").await, 1);
    let code = "SELECT error ->> 'code' FROM outbox.action WHERE schedule = 'fails'";
    assert_eq!(owner.query_one(code, &[]).await.unwrap().get::<_, String>(0), "interrupted");
    let received = provider.received();
    assert_eq!(received.iter().filter(|received| received.request.path == "/fails").count(), 1);
    let keys: Vec<_> = received
        .iter()
        .filter(|received| received.request.path == "/retries")
        .map(|received| received.request.key.clone())
        .collect();
    assert!(keys.len() == 2 && keys[0] == keys[1], "{keys:?}");
}

// Guarantee: pending.recorded
#[tokio::test(flavor = "multi_thread")]
async fn shutdown_with_unrecorded_action_exits_1() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let (provider, receiver) = (Provider::start(|_| Answer::Accept).await.unwrap(), Receiver::start());
    // Longer than a claim is kept without a renewal: its end forgets the outcome during the shutdown.
    let text = relay(&provider, "", "").replace("\"2s\"", "\"5s\"").replace(&provider.url(), &receiver.url());
    let mut process = Process::spawn(&toml(&database, "relay", None, &text), &["run"]);
    line(&process, "relay ready").await;
    receiver.hold();
    let sql = "INSERT INTO outbox.schedule (name, relay, starts_at) VALUES ('a', 'jobs', clock_timestamp())";
    app.batch_execute(sql).await.unwrap();
    eventually(PATIENCE * 2, async || receiver.requests().len() == 1).await;
    owner.batch_execute("REVOKE UPDATE ON outbox.action FROM relay").await.unwrap();
    process.signal(Signal::TERM);
    receiver.release();
    let code = tokio::time::timeout(PATIENCE * 4, process.wait()).await.unwrap();
    assert_eq!(code, Some(1), "{}", process.log());
    let unrecorded = |line: &serde_json::Value| line["cursor"] == "jobs" && line["outcomes"] == 1;
    assert!(lines(&process).iter().any(unrecorded), "{}", process.log());
}

// Guarantee: schedules.once
#[tokio::test(flavor = "multi_thread")]
async fn once_runs_what_is_queued_although_its_row_was_locked_when_the_one_before_ended() {
    let database = database().await;
    let (mut owner, _app) = clients(&database).await;
    let watching = database.connect("postgres").await;
    let provider = Provider::start(|_| Answer::Accept).await.unwrap();
    let text = toml(&database, "relay", None, &relay(&provider, "", ""));
    owner
        .batch_execute(
            "INSERT INTO outbox.schedule (name, relay, starts_at, overlap) VALUES ('queues', 'jobs', 'infinity', 'queue'); \
             SELECT outbox.make_action(s, clock_timestamp() - i * interval '10 milliseconds', false, false, '{}') \
             FROM outbox.schedule AS s, generate_series(2, 1, -1) AS i",
        )
        .await
        .unwrap();
    let open = owner.transaction().await.unwrap();
    open.batch_execute("SELECT FROM outbox.action WHERE status = 'queued' FOR UPDATE").await.unwrap();
    let mut process = Process::spawn(&text, &["run", "--once"]);
    eventually(PATIENCE, async || having(&watching, "queues", "completed").await == 1).await;
    let ended = tokio::time::timeout(Duration::from_secs(2), process.wait()).await;
    assert!(ended.is_err(), "one is still queued: {}", process.log());
    open.rollback().await.unwrap();
    let code = tokio::time::timeout(PATIENCE * 2, process.wait()).await.unwrap();
    assert_eq!((code, having(&watching, "queues", "completed").await), (Some(0), 2), "{}", process.log());
}
