//! Applications' transactions that stay open, payloads that are large, occurrences of many tenants: nobody else waits for them.

use std::time::Duration;

use outbox_testkit::provider::{Answer, Provider};

use super::{clients, having, relay};
use crate::support::{PATIENCE, Process, database, eventually, toml};

// Guarantee: schedules.open-edit
#[tokio::test(flavor = "multi_thread")]
async fn an_edit_that_is_not_committed_holds_up_no_other_schedule_and_loses_no_claim() {
    let database = database().await;
    let (mut owner, app) = clients(&database).await;
    let watching = database.connect("postgres").await;
    let provider = Provider::start(|_| Answer::Late(Duration::from_secs(3))).await.unwrap();
    let text = toml(&database, "relay", None, &relay(&provider, "", ""))
        .replace("timeout = \"1s\"", "timeout = \"20s\"")
        .replace("deadline = \"2s\"", "deadline = \"40s\"");
    let _process = Process::spawn(&text, &["run"]);
    app.batch_execute("INSERT INTO outbox.schedule (name, relay, starts_at) VALUES ('held', 'jobs', now())")
        .await
        .unwrap();
    eventually(PATIENCE, async || having(&watching, "held", "running").await == 1).await;
    // What is deleted was due again already, and its first action has not ended; another's claimant is gone.
    let open = owner.transaction().await.unwrap();
    open.batch_execute(
        "UPDATE outbox.schedule SET next_at = now() - interval '1 second'; DELETE FROM outbox.schedule; \
         SELECT FROM outbox.action WHERE status = 'running' FOR KEY SHARE",
    )
    .await
    .unwrap();
    provider.decide(|_| Answer::Accept);
    app.batch_execute("INSERT INTO outbox.schedule (name, relay, rule) VALUES ('other', 'jobs', 'FREQ=SECONDLY')")
        .await
        .unwrap();
    // Longer than a claim lasts that nobody keeps.
    eventually(PATIENCE * 3, async || having(&watching, "other", "completed").await >= 13).await;
    assert_eq!(having(&watching, "held", "running").await, 1);
    open.commit().await.unwrap();
    eventually(PATIENCE, async || having(&watching, "held", "completed").await == 1).await;
    assert_eq!(having(&watching, "held", "skipped").await, 1);
    assert_eq!(provider.received().iter().filter(|received| received.request.path == "/held").count(), 1);
}

// Guarantee: schedules.open-edit
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_ran_out_behind_an_edit_that_is_not_committed_holds_up_no_other() {
    let database = database().await;
    let (mut owner, app) = clients(&database).await;
    let watching = database.connect("postgres").await;
    let provider = Provider::start(|_| Answer::Accept).await.unwrap();
    let text = toml(&database, "relay", None, &relay(&provider, "", ""));
    owner
        .batch_execute(
            "INSERT INTO outbox.schedule (name, relay, starts_at) VALUES ('gone', 'jobs', now() + interval '1 day'); \
             SELECT outbox.make_action(s, now(), false, false, '{}') FROM outbox.schedule AS s; \
             UPDATE outbox.action SET status = 'running', token = 't', claimed_by = 'gone', started_at = now(), expires_at = now()",
        )
        .await
        .unwrap();
    let open = owner.transaction().await.unwrap();
    open.batch_execute("UPDATE outbox.schedule SET next_at = now(); DELETE FROM outbox.schedule").await.unwrap();
    let _process = Process::spawn(&text, &["run"]);
    app.batch_execute("INSERT INTO outbox.schedule (name, relay, starts_at) VALUES ('other', 'jobs', now())")
        .await
        .unwrap();
    eventually(PATIENCE, async || having(&watching, "other", "completed").await == 1).await;
    open.commit().await.unwrap();
    eventually(PATIENCE, async || having(&watching, "gone", "completed").await == 1).await;
}

// Guarantee: schedules.size
#[tokio::test(flavor = "multi_thread")]
async fn large_payloads_that_are_due_at_once_are_made_in_transactions_that_end() {
    let database = database().await;
    let (owner, _) = clients(&database).await;
    let provider = Provider::start(|_| Answer::Accept).await.unwrap();
    let text = toml(&database, "relay", None, &relay(&provider, "in_flight = 4", ""));
    // Its digits cannot be compressed.
    owner
        .batch_execute(
            "WITH digits AS (SELECT string_agg(md5(i::text), '') AS text FROM generate_series(1, 32500) AS i) \
             INSERT INTO outbox.schedule (name, relay, starts_at, payload) SELECT 'large' || n, 'jobs', now(), \
             jsonb_build_object('n', n, 'text', digits.text) FROM digits, generate_series(1, 150) AS n",
        )
        .await
        .unwrap();
    let _process = Process::spawn(&text, &["run"]);
    let made = "SELECT count(*) FROM outbox.action";
    eventually(PATIENCE * 12, async || owner.query_one(made, &[]).await.unwrap().get::<_, i64>(0) == 150).await;
}

// Guarantee: schedules.size
#[tokio::test(flavor = "multi_thread")]
async fn an_occurrence_of_more_tenants_than_one_transaction_holds_is_made_for_each_of_them_once() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    owner
        .batch_execute("DO $$ BEGIN FOR i IN 1..45 LOOP EXECUTE 'CREATE SCHEMA tenant_' || i; END LOOP; END $$")
        .await
        .unwrap();
    let provider = Provider::start(|_| Answer::Accept).await.unwrap();
    let text = toml(&database, "relay", None, &relay(&provider, "in_flight = 4\nschema = \"tenant_*\"", ""));
    // Its digits cannot be compressed: together more than a call's time allows.
    app.batch_execute(
        "INSERT INTO outbox.schedule (name, tenant, relay, starts_at, payload) SELECT 'all', '*', 'jobs', now(), \
         jsonb_build_object('text', (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 32500) AS i)); \
         INSERT INTO outbox.schedule (name, relay, starts_at) VALUES ('other', 'jobs', now())",
    )
    .await
    .unwrap();
    let _process = Process::spawn(&text, &["run"]);
    eventually(PATIENCE * 6, async || having(&owner, "all", "completed").await == 45).await;
    eventually(PATIENCE, async || having(&owner, "other", "completed").await == 1).await;
    let never_again = "SELECT next_at = 'infinity' FROM outbox.schedule WHERE name = 'all'";
    eventually(PATIENCE, async || owner.query_one(never_again, &[]).await.unwrap().get(0)).await;
    assert_eq!(provider.received().iter().filter(|received| received.request.path == "/all").count(), 45);
}
