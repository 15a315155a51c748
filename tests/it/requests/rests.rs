//! What `status` and `cursor why` say of a relay of requests once nothing waits: an old failure is no news.

use outbox_testkit::provider::{Answer, Provider};
use tokio_postgres::Client;

use super::{clients, having, relay, welcome};
use crate::support::outside::{json, line, stdout_relay};
use crate::support::{PATIENCE, Process, database, eventually, outbox_relay, toml};

/// Whether `outbox.cursor_status` holds an error of the relay.
async fn is_failing(owner: &Client) -> bool {
    let sql = "SELECT coalesce(bool_or(last_error IS NOT NULL OR state <> 'running'), false) FROM outbox.cursor_status";
    owner.query_one(sql, &[]).await.unwrap().get(0)
}

// Guarantee: commands.why
#[tokio::test(flavor = "multi_thread")]
async fn relay_of_requests_is_idle_once_its_last_tries_have_ended() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|_| Answer::Refuse(503)).await.unwrap();
    let text = toml(&database, "relay", None, &relay(&provider, "", ""));
    let mut ids = Vec::new();
    for user in ["ada", "ben", "eve", "joe"] {
        ids.push(welcome(&app, user).await.0);
    }
    let process = Process::spawn(&text, &["run", "--replica-id", "eu-1"]);
    eventually(PATIENCE * 3, async || having(&owner, "unknown").await == 4).await;
    line(&process, "send failed").await;
    eventually(PATIENCE * 3, async || !is_failing(&owner).await).await;
    let state = async || json(&outbox_relay(&text, &["status", "-o", "json"]).await.1)["cursors"][0]["state"].clone();
    eventually(PATIENCE, async || state().await == "idle").await;
    let (code, out, log) = outbox_relay(&text, &["cursor", "why", "mails"]).await;
    assert_eq!(code, Some(0), "{out}{log}");
    assert!(out.contains("unknown outcomes: 4 (`outbox-relay request list --unknown --relay mails`)"), "{out}");
    let step =
        out.lines().find(|line| line.contains("outbox-relay request settle ")).unwrap_or_else(|| panic!("{out}"));
    assert!(ids.iter().all(|id| step.contains(id)) && step.ends_with(" --arrived"), "{out}");
    assert!(out.contains("\n  1. Ask the receiver"), "{out}");
}

// Guarantee: commands.why
#[tokio::test(flavor = "multi_thread")]
async fn success_of_one_replica_ends_the_failure_that_another_reported() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|_| Answer::Accept).await.unwrap();
    let text = toml(&database, "relay", None, &relay(&provider, "", ""));
    // Something waits all the time: the relay is never idle.
    welcome(&app, "ada").await;
    let later =
        "UPDATE outbox.request SET attempts = 1, not_before = now() + interval '1 hour', error = '{\"code\": \"x\"}'";
    owner.batch_execute(later).await.unwrap();
    let process = Process::spawn(&text, &["run", "--replica-id", "eu-1"]);
    line(&process, "relay ready").await;
    owner
        .batch_execute(
            "INSERT INTO outbox.cursor_status (cursor, state, halted, last_error, updated_at) VALUES ('mails', 'backing_off', false, \
             '{\"at\": \"2026-11-24T23:42:35Z\", \"class\": \"retry\", \"code\": \"http_503\", \"message\": \"m\", \"hint\": \"h\"}', now()) \
             ON CONFLICT (cursor) DO UPDATE SET state = excluded.state, last_error = excluded.last_error",
        )
        .await
        .unwrap();
    welcome(&app, "ben").await;
    eventually(PATIENCE * 3, async || having(&owner, "completed").await == 1).await;
    eventually(PATIENCE * 3, async || !is_failing(&owner).await).await;
}

// Guarantee: commands.why
#[tokio::test(flavor = "multi_thread")]
async fn failed_requests_are_named_by_any_configuration() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|_| Answer::Refuse(422)).await.unwrap();
    let text = toml(&database, "relay", None, &relay(&provider, "", ""));
    welcome(&app, "ada").await;
    outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!(having(&owner, "failed").await, 1);
    let other = toml(&database, "relay", None, &stdout_relay("other", ""));
    for text in [&text, &other] {
        let (_, out, _) = outbox_relay(text, &["cursor", "why", "mails"]).await;
        println!("{out}");
        let list = ["request", "list", "--status", "failed", "--relay", "mails"];
        assert!(out.contains(&format!("failed requests: 1 (`outbox-relay {}`)", list.join(" "))), "{out}");
        assert!(!out.contains("dead letter"), "{out}");
        let (code, out, log) = outbox_relay(text, &list).await;
        assert!(code == Some(0) && out.lines().count() == 2, "{out}{log}");
    }
}
