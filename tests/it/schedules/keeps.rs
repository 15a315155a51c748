//! Keeping claims waits for nobody.

use std::collections::HashMap;
use std::time::Duration;

use outbox_relay::jobs::actions::{self, Kept};
use rustix::process::{Pid, Signal, kill_process};

use super::{clients, having};
use crate::support::outside::line;
use crate::support::receiver::Receiver;
use crate::support::{PATIENCE, Process, database, eventually, sessions, toml};

/// Two actions that are being carried out, and one that somebody else has taken up.
const RUNNING: &str = "INSERT INTO outbox.action (schedule_id, schedule, tenant, relay, planned_at, due_at, try_at, started_at, \
    status, payload, on_interrupted, timeout, token, claimed_by, expires_at) \
    SELECT i, 's', '', 'jobs', t, t, t, t, 'running', '{}', 'retry', '1 minute', CASE i WHEN 3 THEN 'theirs' ELSE 'ours' END, 'r', t \
    FROM generate_series(1, 3) AS i, now() AS t";

#[tokio::test]
async fn claims_are_kept_while_somebody_holds_one_of_their_rows_and_nobody_waits_for_another() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    owner.batch_execute(RUNNING).await.unwrap();
    let ids: Vec<i64> = owner
        .query("SELECT action_id FROM outbox.action ORDER BY schedule_id", &[])
        .await
        .unwrap()
        .iter()
        .map(|row| row.get(0))
        .collect();
    let held = database.connect("postgres").await;
    held.batch_execute(&format!("BEGIN; SELECT FROM outbox.action WHERE action_id = {} FOR UPDATE", ids[0]))
        .await
        .unwrap();

    let session = sessions(&database, "relay", "test").open().await.unwrap();
    session.batch_execute("SET lock_timeout = '10ms'").await.unwrap();
    let claim = |id: &i64| Kept { id: *id, token: "ours".to_owned(), progress: Some("half".to_owned()), ran: None };
    let claims = ids.iter().map(claim).collect::<Vec<_>>();
    let kept = actions::keep(&session, Duration::from_secs(10), &claims).await.unwrap();
    let ours = HashMap::from([(ids[0], false), (ids[1], true)]);
    assert_eq!(kept, ours, "one that is locked is still ours, and not renewed; one that was taken up is not ours");
    let longer = "SELECT array_agg(expires_at > started_at + interval '5 seconds' ORDER BY schedule_id), \
                  array_agg(progress IS NOT NULL ORDER BY schedule_id) FROM outbox.action";
    let row = owner.query_one(longer, &[]).await.unwrap();
    assert_eq!(
        (row.get::<_, Vec<bool>>(0), row.get::<_, Vec<bool>>(1)),
        (vec![false, true, false], vec![false, true, false])
    );
}

// Guarantee: schedules.killed-action
#[tokio::test(flavor = "multi_thread")]
async fn action_that_ends_its_replica_again_and_again_waits_for_longer_each_time() {
    let (database, receiver) = (database().await, Receiver::start());
    let (owner, _) = clients(&database).await;
    owner.batch_execute(RUNNING).await.unwrap();
    // The first has never failed, the second has four times, and the third's replica is still at work.
    owner
        .batch_execute(
            "UPDATE outbox.action SET attempts = 4 * (schedule_id - 1), expires_at = CASE schedule_id WHEN 3 \
             THEN now() + interval '1 hour' ELSE now() END",
        )
        .await
        .unwrap();
    let relay = format!(
        "[[relay]]\nname = \"jobs\"\n[relay.source.schedule]\n[relay.sink.http]\nurl = \"{}/\"\nbody = \"x\"\n",
        receiver.url()
    );
    let _process = Process::spawn(&toml(&database, "relay", None, &relay), &["run"]);
    let taken_up = "SELECT attempts = 5 AND status = 'due' FROM outbox.action WHERE schedule_id = 2";
    eventually(PATIENCE, async || owner.query_one(taken_up, &[]).await.unwrap().get(0)).await;
    let pause = "SELECT EXTRACT(EPOCH FROM try_at - updated_at)::float8 FROM outbox.action WHERE schedule_id = 2";
    let pause: f64 = owner.query_one(pause, &[]).await.unwrap().get(0);
    assert!((7.9..8.1).contains(&pause), "{pause}");
    eventually(PATIENCE, async || having(&owner, "s", "completed").await == 1).await;
    assert_eq!(receiver.requests().len(), 1);
}

// Guarantee: schedules.claims
#[tokio::test(flavor = "multi_thread")]
async fn claims_are_renewed_while_the_session_of_the_polls_does_not_answer() {
    let (database, receiver) = (database().await, Receiver::start());
    let (owner, app) = clients(&database).await;
    let jobs = format!(
        "[[relay]]\nname = \"jobs\"\n[relay.source.schedule]\n[relay.turn]\ndeadline = \"40s\"\n[relay.sink.http]\nurl = \"{}/\"\n\
         body = \"x\"\ntimeout = \"24s\"\n",
        receiver.url()
    );
    receiver.hold();
    let process = Process::spawn(&toml(&database, "relay", None, &jobs), &["run"]);
    line(&process, "relay ready").await;
    app.batch_execute(
        "INSERT INTO outbox.schedule (name, relay, starts_at, on_interrupted) VALUES ('long', 'jobs', now(), 'retry')",
    )
    .await
    .unwrap();
    eventually(PATIENCE * 3, async || receiver.requests().len() == 1).await;
    let polls = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'outbox-relay/%' \
                 AND query LIKE '%c.token IS NOT NULL, c.rule%'";
    let mut found = None;
    eventually(PATIENCE, async || {
        found = owner.query_opt(polls, &[]).await.unwrap().map(|row| row.get::<_, i32>(0));
        found.is_some()
    })
    .await;
    let pid = found.and_then(Pid::from_raw).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    // Longer than a claim lasts.
    let lasted = "SELECT started_at + interval '14 seconds' < clock_timestamp() FROM outbox.action";
    eventually(PATIENCE * 3, async || owner.query_one(lasted, &[]).await.unwrap().get(0)).await;
    let kept = "SELECT status = 'running' AND attempts = 0 AND expires_at > clock_timestamp() FROM outbox.action";
    let kept: bool = owner.query_one(kept, &[]).await.unwrap().get(0);
    kill_process(pid, Signal::CONT).unwrap();
    receiver.release();
    assert!(kept, "{}", process.log());
    eventually(PATIENCE * 3, async || having(&owner, "long", "completed").await == 1).await;
    assert_eq!(receiver.requests().len(), 1, "{}", process.log());
}
