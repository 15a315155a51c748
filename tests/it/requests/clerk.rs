//! The clerk without anything going wrong on its side: requests are sent once, with what was pinned.

use std::time::Duration;

use outbox_testkit::provider::{Answer, Provider};

use rustix::process::Signal;

use super::{clients, having, listed, relay, welcome};
use crate::support::outside::{line, lines};
use crate::support::receiver::Receiver;
use crate::support::{PATIENCE, Process, database, eventually, outbox_relay, toml};

// Guarantee: requests.once-without-faults
#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_sent_once_and_the_ledger_knows_what_was_sent_and_what_the_provider_said() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|_| Answer::Accept).await.unwrap();
    let text = toml(&database, "relay", None, &relay(&provider, "", ""));
    let (id, ..) = welcome(&app, "ada").await;
    app.batch_execute(
        "SELECT outbox.enqueue('bob', 'reset', '{\"name\": \"B\\\"ob\"}', not_before => now() + interval '1 hour')",
    )
    .await
    .unwrap();
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!(code, Some(0), "{log}");
    let received = provider.received();
    assert_eq!(received.len(), 1, "{received:?}");
    assert_eq!(received[0].request.key, format!("mails/{id}"));
    assert_eq!(received[0].request.body, r#"{"to": "ada", "name": "friend"}"#);
    let sql = "SELECT provider_id, reply, body IS NULL, body_hash IS NOT NULL, attempts, ambiguous, error IS NULL \
               FROM outbox.request WHERE status = 'completed'";
    let row = owner.query_one(sql, &[]).await.unwrap();
    assert_eq!((row.get::<_, &str>(0), row.get::<_, &str>(1)), ("m-0", "HTTP 200"));
    assert!(row.get::<_, bool>(2) && row.get::<_, bool>(3) && row.get::<_, bool>(6));
    assert_eq!((row.get::<_, i32>(4), row.get::<_, i32>(5)), (0, 0));
    assert_eq!(welcome(&app, "ada").await, (id, "completed".to_owned(), true));
    assert_eq!(having(&owner, "pending").await, 1, "its time has not come");
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!((code, provider.count()), (Some(0), 1), "{log}");
}

// Guarantee: requests.same-bytes
#[tokio::test(flavor = "multi_thread")]
async fn each_try_sends_the_same_bytes_also_when_the_template_has_changed_in_between() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|_| Answer::Refuse(503)).await.unwrap();
    let resend = relay(&provider, "on_unknown = \"resend\"", "key_memory = \"1h\"");
    welcome(&app, "ada").await;
    let (code, ..) = outbox_relay(&toml(&database, "relay", None, &resend), &["run", "--once"]).await;
    assert_eq!(code, Some(1));
    provider.decide(|_| Answer::Accept);
    let changed = toml(&database, "relay", None, &resend.replace("friend", "somebody"));
    let (code, _, log) = outbox_relay(&changed, &["run", "--once"]).await;
    assert_eq!(code, Some(0), "{log}");
    let received = provider.received();
    assert_eq!(received.len(), 2);
    assert_eq!(received[0].request.body, received[1].request.body);
    assert_eq!(received[0].request.key, received[1].request.key);
    let sql =
        "SELECT ambiguous, body_hash = sha256(convert_to($1, 'UTF8')) FROM outbox.request WHERE status = 'completed'";
    let row = owner.query_one(sql, &[&received[0].request.body]).await.unwrap();
    assert_eq!(row.get::<_, i32>(0), 1);
}

// Guarantee: requests.refusal
#[tokio::test(flavor = "multi_thread")]
async fn what_the_provider_refuses_has_failed_holds_no_other_up_and_is_sent_again_only_when_asked_for() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|request| match request.body.contains("\"bad\"") {
        true => Answer::Refuse(422),
        false => Answer::Accept,
    })
    .await
    .unwrap();
    let text = toml(&database, "relay", None, &relay(&provider, "", ""));
    for user in ["bad", "ada", "bob"] {
        welcome(&app, user).await;
    }
    let process = Process::spawn(&text, &["run"]);
    eventually(PATIENCE * 3, async || having(&owner, "completed").await == 2 && having(&owner, "failed").await == 1)
        .await;
    assert_eq!(welcome(&app, "bad").await.1, "failed");
    assert_eq!(provider.count(), 3);
    provider.decide(|_| Answer::Accept);
    let sql = "SELECT status FROM outbox.enqueue_once('bad:welcome', 'bad', 'welcome', retry_failed => true)";
    assert_eq!(app.query_one(sql, &[]).await.unwrap().get::<_, &str>(0), "pending");
    eventually(PATIENCE * 3, async || having(&owner, "completed").await == 3).await;
    assert!(process.log().contains("http_422"), "{}", process.log());
}

// Guarantee: requests.refusal
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_cannot_be_rendered_fails_without_being_sent_and_refused_credentials_halt_the_relay() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|_| Answer::Refuse(401)).await.unwrap();
    let strict = relay(&provider, "", "").replace("name | default(\"friend\") | tojson", "name");
    let text = toml(&database, "relay", None, &strict);
    welcome(&app, "ada").await;
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!((code, provider.count()), (Some(1), 0), "{log}");
    assert_eq!(having(&owner, "failed").await, 1);
    app.batch_execute("SELECT outbox.enqueue('bob', 'welcome', '{\"name\": \"Bob\"}')").await.unwrap();
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!((code, provider.count()), (Some(1), 1), "{log}");
    assert_eq!(having(&owner, "pending").await, 1, "it waits for the relay");
    let (_, out, _) = outbox_relay(&text, &["status"]).await;
    assert!(out.contains("halted"), "{out}");
}

/// It is rendered in the claim's transaction: as the oldest it ended each claim, and no request was ever sent.
// Guarantee: requests.refusal
#[tokio::test(flavor = "multi_thread")]
async fn request_that_takes_too_long_to_be_rendered_is_put_off_and_others_flow() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|_| Answer::Accept).await.unwrap();
    // A search of the whole text for each of its letters: the relay ends that after two seconds, and a claim may take 600 ms.
    let search = "{% set text = v | default(\"\") %}{% for x in text | list %}{% if \"!\" in text %}!{% endif %}{% endfor %}\
                  {{ user_id | tojson }}";
    let slow = relay(&provider, "", "").replace("\"1s\"", "\"600ms\"").replace("\"2s\"", "\"1s\"");
    let slow = slow.replace("{{ name | default(\"friend\") | tojson }}", search);
    app.batch_execute("SELECT outbox.enqueue('slow', 'welcome', jsonb_build_object('v', repeat('x', 500000)))")
        .await
        .unwrap();
    app.batch_execute("SELECT outbox.enqueue('u' || n, 'welcome') FROM generate_series(1, 3) AS n").await.unwrap();
    let text = toml(&database, "relay", None, &slow);
    let process = Process::spawn(&text, &["run"]);
    eventually(PATIENCE * 6, async || having(&owner, "completed").await == 3).await;
    let waiting = listed(&text, &["--status", "pending"]).await;
    assert_eq!((waiting.len(), &waiting[0]["user_id"]), (1, &"slow".into()), "{}", process.log());
    assert_eq!(waiting[0]["error"]["code"], "rendering_too_slow");
    assert!(waiting[0]["attempts"].as_i64().unwrap() > 0, "{waiting:?}");
    owner.batch_execute("UPDATE outbox.request SET parameters = '{}' WHERE user_id = 'slow'").await.unwrap();
    eventually(PATIENCE * 6, async || having(&owner, "completed").await == 4).await;
    assert_eq!(provider.count(), 4, "each once");
}

// Guarantee: requests.once-without-faults
#[tokio::test(flavor = "multi_thread")]
async fn three_replicas_share_the_requests_and_none_is_sent_twice() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|_| Answer::Late(Duration::from_millis(5))).await.unwrap();
    let text = toml(&database, "relay", None, &relay(&provider, "", ""));
    app.batch_execute("SELECT outbox.enqueue('u' || n, 'welcome') FROM generate_series(1, 600) AS n").await.unwrap();
    let replicas: Vec<Process> =
        (0..3).map(|n| Process::spawn(&text, &["run", "--replica-id", &format!("r{n}")])).collect();
    eventually(PATIENCE * 3, async || having(&owner, "completed").await == 600).await;
    assert_eq!(provider.count(), 600);
    let sql = "SELECT count(DISTINCT claimed_by) FROM outbox.request";
    assert!(owner.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) > 1, "one replica did it all");
    drop(replicas);
}

// Guarantee: pending.recorded
#[tokio::test(flavor = "multi_thread")]
async fn shutdown_with_unrecorded_request_exits_1() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let (provider, receiver) = (Provider::start(|_| Answer::Accept).await.unwrap(), Receiver::start());
    let text = relay(&provider, "", "").replace(&provider.url(), &receiver.url());
    let mut process = Process::spawn(&toml(&database, "relay", None, &text), &["run"]);
    line(&process, "relay ready").await;
    receiver.hold();
    welcome(&app, "ada").await;
    eventually(PATIENCE, async || receiver.requests().len() == 1).await;
    owner.batch_execute("REVOKE UPDATE ON outbox.request FROM relay").await.unwrap();
    process.signal(Signal::TERM);
    receiver.release();
    let code = tokio::time::timeout(PATIENCE * 4, process.wait()).await.unwrap();
    assert_eq!(code, Some(1), "{}", process.log());
    let unrecorded = |line: &serde_json::Value| line["cursor"] == "mails" && line["outcomes"] == 1;
    assert!(lines(&process).iter().any(unrecorded), "{}", process.log());
}

// Guarantee: pending.recorded
#[tokio::test(flavor = "multi_thread")]
async fn request_is_completed_after_its_claim_has_expired() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let (provider, receiver) = (Provider::start(|_| Answer::Accept).await.unwrap(), Receiver::start());
    let text = relay(&provider, "", "").replace(&provider.url(), &receiver.url());
    let mut process = Process::spawn(&toml(&database, "relay", None, &text), &["run"]);
    line(&process, "relay ready").await;
    receiver.hold();
    welcome(&app, "ada").await;
    eventually(PATIENCE, async || receiver.requests().len() == 1).await;
    owner.batch_execute("REVOKE UPDATE ON outbox.request FROM relay").await.unwrap();
    receiver.release();
    let count = async |sql: &str| -> i64 { owner.query_one(sql, &[]).await.unwrap().get(0) };
    let expired = "SELECT count(*) FROM outbox.request WHERE expires_at < clock_timestamp() - interval '6 seconds'";
    eventually(PATIENCE * 4, async || count(expired).await == 1).await;
    owner.batch_execute("GRANT UPDATE ON outbox.request TO relay").await.unwrap();
    let completed = "SELECT count(*) FROM outbox.request WHERE status = 'completed'";
    eventually(PATIENCE * 3, async || count(completed).await == 1).await;
    assert_eq!(receiver.requests().len(), 1, "not sent again: {}", process.log());
    process.signal(Signal::TERM);
    assert_eq!(process.wait().await, Some(0), "{}", process.log());
}
