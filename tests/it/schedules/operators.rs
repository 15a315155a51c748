//! What operators and applications can do about actions, and what they are told.

use outbox_testkit::provider::{Answer, Provider};

use super::{clients, having, relay};
use crate::support::{PATIENCE, Process, database, eventually, outbox_relay, toml};

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_can_be_cancelled_by_the_application_also_when_its_schedule_is_gone() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|_| Answer::Refuse(503)).await.unwrap();
    let text = toml(&database, "relay", None, &relay(&provider, "", ""));
    app.batch_execute(
        "INSERT INTO outbox.schedule (name, relay, starts_at, overlap) VALUES ('fails', 'jobs', now(), 'queue')",
    )
    .await
    .unwrap();
    owner.batch_execute("SELECT outbox.make_action(s, now() + i * interval '1 second', true, false, NULL) FROM outbox.schedule AS s, generate_series(1, 3) AS i").await.unwrap();
    let _process = Process::spawn(&text, &["run"]);
    let tried = "SELECT COALESCE(max(attempts), 0) > 0 FROM outbox.action WHERE status = 'due'";
    eventually(PATIENCE * 2, async || owner.query_one(tried, &[]).await.unwrap().get(0)).await;
    let why = async || outbox_relay(&text, &["cursor", "why", "jobs"]).await.1;
    eventually(PATIENCE * 2, async || why().await.contains("waits to be retried")).await;
    app.batch_execute("DELETE FROM outbox.schedule").await.unwrap();
    let cancelled =
        async || app.query_one("SELECT outbox.cancel_actions('fails')", &[]).await.unwrap().get::<_, i32>(0);
    eventually(PATIENCE, async || {
        cancelled().await;
        having(&owner, "fails", "skipped").await == 4
    })
    .await;
    let result: String = owner.query_one("SELECT min(result) FROM outbox.action", &[]).await.unwrap().get(0);
    assert_eq!(result, "cancelled by app");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_without_any_option_leaves_the_relays_role_able_to_go_on() {
    let database = database().await;
    let owner = toml(&database, "postgres", None, "");
    for verb in [&["migrate", "down", "--to", "5"][..], &["migrate", "up"]] {
        let (code, _, log) = outbox_relay(&owner, verb).await;
        assert_eq!(code, Some(0), "{log}");
    }
    let provider = Provider::start(|_| Answer::Accept).await.unwrap();
    let text = toml(&database, "relay", None, &relay(&provider, "", ""));
    let (owner, app) = clients(&database).await;
    app.batch_execute("INSERT INTO outbox.schedule (name, relay, starts_at) VALUES ('once', 'jobs', now())")
        .await
        .unwrap();
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!((code, having(&owner, "once", "completed").await), (Some(0), 1), "{log}");
    for verb in [&["status"][..], &["cursor", "why", "jobs"], &["schedule", "list"], &["action", "list"]] {
        let (code, _, log) = outbox_relay(&text, verb).await;
        assert_eq!(code, Some(0), "{verb:?}: {log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_of_a_relay_that_starts_none_has_failed_and_is_not_passed_over() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|_| Answer::Accept).await.unwrap();
    let text = toml(&database, "relay", None, &relay(&provider, "", ""));
    app.batch_execute(
        "INSERT INTO outbox.schedule (name, relay, starts_at, command) VALUES ('x', 'jobs', now(), 'cleanup')",
    )
    .await
    .unwrap();
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!((code, provider.count(), having(&owner, "x", "failed").await), (Some(1), 0, 1), "{log}");
}
