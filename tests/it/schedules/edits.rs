//! Schedules that applications write, edit and delete in plain SQL while replicas run.

use std::time::Duration;

use outbox_testkit::provider::{Answer, Provider};

use super::{clients, having, names, relay};
use crate::support::outside::{get, listener};
use crate::support::{PATIENCE, Process, database, eventually, outbox_relay, toml};

// Guarantee: schedules.edits
#[tokio::test(flavor = "multi_thread")]
async fn what_an_application_writes_edits_and_deletes_is_followed_by_two_replicas_each_instant_once() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|_| Answer::Accept).await.unwrap();
    let text = toml(&database, "relay", None, &relay(&provider, "", ""));
    let replicas = [Process::spawn(&text, &["run"]), Process::spawn(&text, &["run"])];
    // Who says so is there.
    app.batch_execute("INSERT INTO outbox.schedule (name, relay, rule) VALUES ('stray', 'nobody', 'FREQ=DAILY')")
        .await
        .unwrap();
    let stray = "SELECT problem LIKE 'relay_unknown: %' FROM outbox.schedule WHERE name = 'stray'";
    eventually(PATIENCE * 2, async || {
        owner.query_one(stray, &[]).await.unwrap().get::<_, Option<bool>>(0) == Some(true)
    })
    .await;
    let (_, checked, _) = outbox_relay(&text, &["check"]).await;
    assert!(checked.contains("schedule stray: relay_unknown: "), "{checked}");
    // ScheduleProblem reads this metric.
    let admin = listener(&replicas[0]).await;
    let counted = "outbox_relay_schedule_problems{cursor=\"jobs\"} 1";
    eventually(PATIENCE, async || get(&format!("{admin}/metrics")).await.1.lines().any(|line| line == counted)).await;
    app.batch_execute(
        "INSERT INTO outbox.schedule (name, relay, starts_at, payload) VALUES ('once', 'jobs', now() + interval '3 seconds', '{\"note\": \"n\"}'); \
         INSERT INTO outbox.schedule (name, relay, starts_at) VALUES ('later', 'jobs', now() + interval '40 years'); \
         INSERT INTO outbox.schedule (name, relay, starts_at) VALUES ('never', 'jobs', now() + interval '8 seconds'); \
         INSERT INTO outbox.schedule (name, relay, rule, overlap) VALUES ('ticks', 'jobs', 'FREQ=SECONDLY;INTERVAL=2;COUNT=4', 'queue'); \
         INSERT INTO outbox.schedule (name, relay, rule) VALUES ('bad', 'jobs', 'FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30')",
    )
    .await
    .unwrap();
    // A bad rule says so, and the others run on.
    let problem = "SELECT problem LIKE 'never: %' FROM outbox.schedule WHERE name = 'bad'";
    eventually(PATIENCE, async || owner.query_one(problem, &[]).await.unwrap().get::<_, Option<bool>>(0) == Some(true))
        .await;
    app.batch_execute("DELETE FROM outbox.schedule WHERE name = 'never'").await.unwrap();
    let planned = "SELECT next_at > now() + interval '39 years' FROM outbox.schedule WHERE name = 'later'";
    eventually(PATIENCE, async || owner.query_one(planned, &[]).await.unwrap().get::<_, Option<bool>>(0) == Some(true))
        .await;
    app.batch_execute("UPDATE outbox.schedule SET starts_at = now() + interval '1 second' WHERE name = 'later'")
        .await
        .unwrap();
    eventually(PATIENCE, async || {
        having(&owner, "once", "completed").await == 1
            && having(&owner, "later", "completed").await == 1
            && having(&owner, "ticks", "completed").await >= 3
    })
    .await;
    app.batch_execute("UPDATE outbox.schedule SET rule = 'FREQ=SECONDLY', starts_at = NULL WHERE name = 'bad'")
        .await
        .unwrap();
    eventually(PATIENCE, async || having(&owner, "bad", "completed").await >= 1).await;
    app.batch_execute("DELETE FROM outbox.schedule").await.unwrap();
    eventually(PATIENCE, async || {
        let open = "SELECT count(*) FROM outbox.action WHERE status IN ('queued', 'due', 'running')";
        owner.query_one(open, &[]).await.unwrap().get::<_, i64>(0) == 0
    })
    .await;
    let received = provider.received();
    let keys: std::collections::BTreeSet<_> = received.iter().map(|received| &received.request.key).collect();
    assert_eq!(keys.len(), received.len(), "each instant once: {received:?}");
    let names = names(&received);
    assert!(!names.contains(&"never".to_owned()) && !names.contains(&"stray".to_owned()), "{names:?}");
    let late = "SELECT max(started_at - planned_at) FROM outbox.action WHERE status = 'completed'";
    let late: String = owner.query_one(&format!("SELECT ({late})::text"), &[]).await.unwrap().get(0);
    println!("the latest was begun {late} after its instant");
    assert_eq!(
        owner.query_one("SELECT count(*) FROM outbox.action", &[]).await.unwrap().get::<_, i64>(0),
        i64::try_from(received.len()).unwrap()
    );
    assert_eq!(
        received.iter().find(|received| received.request.path == "/once").unwrap().request.body,
        "{\"note\": \"n\"}"
    );
}

// Guarantee: schedules.edit-future
#[tokio::test(flavor = "multi_thread")]
async fn an_edit_replaces_the_future_and_what_was_due_already_is_made_by_the_old_rule() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|_| Answer::Accept).await.unwrap();
    let text = toml(&database, "relay", None, &relay(&provider, "", ""));
    for name in ["edited", "deleted", "unwanted", "paused"] {
        let missed = if name == "unwanted" { "none" } else { "latest" };
        let sql = "INSERT INTO outbox.schedule (name, relay, rule, missed, payload) VALUES ($1, 'jobs', 'FREQ=DAILY', $2, '{\"note\": \"old\"}')";
        app.execute(sql, &[&name, &missed]).await.unwrap();
    }
    // As it stands when no replica has come since it was due.
    owner.batch_execute("UPDATE outbox.schedule SET next_at = date_trunc('second', now())").await.unwrap();
    app.batch_execute(
        "UPDATE outbox.schedule SET rule = 'FREQ=WEEKLY', payload = '{\"note\": \"new\"}' WHERE name IN ('edited', 'unwanted'); \
         UPDATE outbox.schedule SET enabled = false WHERE name = 'paused'; DELETE FROM outbox.schedule WHERE name = 'deleted'",
    )
    .await
    .unwrap();
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!(code, Some(0), "{log}");
    let mut sent: Vec<_> = provider.received().into_iter().map(|one| (one.request.path, one.request.body)).collect();
    sent.sort();
    let old = |name: &str| (format!("/{name}"), "{\"note\": \"old\"}".to_owned());
    assert_eq!(sent, [old("deleted"), old("edited"), old("paused")]);
    let next = "SELECT next_at > now() + interval '6 days', last_at < now() FROM outbox.schedule WHERE name = 'edited'";
    let row = owner.query_one(next, &[]).await.unwrap();
    assert!(row.get::<_, bool>(0) && row.get::<_, bool>(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn once_waits_for_a_due_schedule_that_a_transaction_has_locked() {
    let database = database().await;
    let (mut owner, app) = clients(&database).await;
    let provider = Provider::start(|_| Answer::Accept).await.unwrap();
    let text = toml(&database, "relay", None, &relay(&provider, "", ""));
    app.batch_execute("INSERT INTO outbox.schedule (name, relay, rule) VALUES ('x', 'jobs', 'FREQ=DAILY')")
        .await
        .unwrap();
    owner.batch_execute("UPDATE outbox.schedule SET next_at = date_trunc('second', now())").await.unwrap();
    let edit = owner.transaction().await.unwrap();
    edit.batch_execute("SELECT FROM outbox.schedule FOR UPDATE").await.unwrap();
    let mut process = Process::spawn(&text, &["run", "--once"]);
    eventually(PATIENCE, async || process.log().contains("relay ready")).await;
    let ended = tokio::time::timeout(Duration::from_secs(2), process.wait()).await;
    assert!(ended.is_err(), "it is due: {}", process.log());
    edit.rollback().await.unwrap();
    assert_eq!(process.wait().await, Some(0), "{}", process.log());
    assert_eq!(provider.received().len(), 1);
}

// Guarantee: schedules.roles
#[tokio::test(flavor = "multi_thread")]
async fn an_application_can_write_schedules_and_no_actions_and_the_relay_no_schedules() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let relay = database.connect("relay").await;
    app.batch_execute("INSERT INTO outbox.schedule (name, relay, rule) VALUES ('x', 'jobs', 'FREQ=DAILY')")
        .await
        .unwrap();
    for sql in [
        "INSERT INTO outbox.schedule (name, relay, rule, next_at) VALUES ('y', 'jobs', 'FREQ=DAILY', now())",
        "UPDATE outbox.schedule SET problem = NULL",
        "DELETE FROM outbox.action",
        "SELECT outbox.make_action(s, now(), false, false, '{}') FROM outbox.schedule AS s",
    ] {
        assert_eq!(app.batch_execute(sql).await.expect_err(sql).code().unwrap().code(), "42501", "{sql}");
    }
    for sql in [
        "UPDATE outbox.schedule SET rule = 'FREQ=SECONDLY'",
        "DELETE FROM outbox.schedule",
        "DELETE FROM outbox.action",
    ] {
        assert_eq!(relay.batch_execute(sql).await.expect_err(sql).code().unwrap().code(), "42501", "{sql}");
    }
    for wrong in ["rule = NULL", "payload = '[]'", "missed = 'some'", "timeout = '0'", "name = ''"] {
        let sql = format!("UPDATE outbox.schedule SET {wrong}");
        assert_eq!(app.batch_execute(&sql).await.expect_err(wrong).code().unwrap().code(), "23514", "{wrong}");
    }
    // An edit that changes nothing of when leaves what was computed.
    owner.batch_execute("UPDATE outbox.schedule SET next_at = '2040-01-01'").await.unwrap();
    app.batch_execute("UPDATE outbox.schedule SET payload = '{}', rule = rule, timeout = '5 minutes'").await.unwrap();
    let kept = "SELECT next_at = '2040-01-01' FROM outbox.schedule";
    assert!(owner.query_one(kept, &[]).await.unwrap().get::<_, bool>(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_of_a_schedule_for_each_tenant_loses_no_occurrence_that_was_due() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    owner.batch_execute("CREATE SCHEMA tenant_a; CREATE SCHEMA tenant_b").await.unwrap();
    let provider = Provider::start(|_| Answer::Accept).await.unwrap();
    let text = toml(&database, "relay", None, &relay(&provider, "schema = \"tenant_*\"", ""));
    let sql = "INSERT INTO outbox.schedule (name, tenant, relay, rule, starts_at) VALUES ('all', '*', 'jobs', 'FREQ=DAILY', clock_timestamp() + interval '1 second')";
    app.batch_execute(sql).await.unwrap();
    let mut process = Process::spawn(&text, &["run"]);
    eventually(PATIENCE * 2, async || having(&owner, "all", "completed").await == 2).await;
    process.signal(rustix::process::Signal::KILL);
    process.wait().await;
    owner
        .batch_execute("UPDATE outbox.schedule SET next_at = date_trunc('second', now()) - interval '1 hour'")
        .await
        .unwrap();
    app.batch_execute("DELETE FROM outbox.schedule").await.unwrap();
    assert_eq!(having(&owner, "all", "due").await, 2, "one for each tenant of the occurrence before");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_schedule_left_behind_at_a_relay_that_is_gone_holds_nothing_up() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|_| Answer::Accept).await.unwrap();
    let text = toml(&database, "relay", None, &relay(&provider, "", ""));
    app.batch_execute(
        "INSERT INTO outbox.schedule (name, relay, rule, overlap) VALUES ('moves', 'gone', 'FREQ=DAILY', 'queue')",
    )
    .await
    .unwrap();
    owner.batch_execute("SELECT outbox.make_action(s, now() - i * interval '1 minute', true, false, NULL) FROM outbox.schedule AS s, generate_series(1, 2) AS i").await.unwrap();
    app.batch_execute("UPDATE outbox.schedule SET relay = 'jobs', rule = NULL, starts_at = now()").await.unwrap();
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!((code, having(&owner, "moves", "completed").await), (Some(0), 1), "{log}");
    let left = "SELECT count(*) FROM outbox.action WHERE relay = 'gone' AND status IN ('due', 'queued')";
    assert_eq!(owner.query_one(left, &[]).await.unwrap().get::<_, i64>(0), 2);
}
