//! Outcomes that nobody knows: a replica killed in the midst, an answer that does not come.

use outbox_testkit::provider::{Answer, Provider};
use rustix::process::Signal;
use tokio_postgres::Client;

use super::{clients, having, listed, welcome};
use crate::support::{PATIENCE, Process, database, eventually, outbox_relay, toml};

/// [`super::relay`] with time enough to kill a replica before its request times out.
fn relay(provider: &Provider, more: &str, sink: &str) -> String {
    super::relay(provider, more, sink).replace("\"2s\"", "\"3s\"").replace("\"1s\"", "\"1800ms\"")
}

/// Starts a replica, waits until the provider has a request that it does not answer, and kills the replica.
async fn killed_in_the_midst(text: &str, provider: &Provider) {
    let mut process = Process::spawn(text, &["run", "--replica-id", "first"]);
    eventually(PATIENCE * 3, async || provider.count() == 1).await;
    process.signal(Signal::KILL);
    process.wait().await;
}

async fn ambiguous(owner: &Client) -> i32 {
    owner.query_one("SELECT ambiguous FROM outbox.request", &[]).await.unwrap().get(0)
}

// Guarantee: requests.crash
#[tokio::test(flavor = "multi_thread")]
async fn dead_letter_a_request_left_by_a_crash_is_listed_and_never_sent_again_by_itself() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|_| Answer::Hang).await.unwrap();
    let text = toml(&database, "relay", None, &relay(&provider, "", ""));
    let (id, ..) = welcome(&app, "ada").await;
    killed_in_the_midst(&text, &provider).await;
    assert_eq!(having(&owner, "processing").await, 1);
    provider.decide(|_| Answer::Accept);
    let _second = Process::spawn(&text, &["run", "--replica-id", "second"]);
    eventually(PATIENCE * 3, async || having(&owner, "unknown").await == 1).await;
    let found = listed(&text, &["--unknown"]).await;
    assert_eq!((found.len(), &found[0]["request_id"], &found[0]["status"]), (1, &id.clone().into(), &"unknown".into()));
    assert_eq!(found[0]["error"]["code"], "interrupted");
    assert_eq!((provider.count(), ambiguous(&owner).await), (1, 1));
    assert_eq!(welcome(&app, "ada").await, (id.clone(), "unknown".to_owned(), false));
    let (code, _, log) = outbox_relay(&text, &["request", "redrive", &id, "--yes"]).await;
    assert_eq!(code, Some(0), "{log}");
    eventually(PATIENCE * 3, async || having(&owner, "completed").await == 1).await;
    let received = provider.received();
    assert_eq!((received.len(), &received[0].request.body), (2, &received[1].request.body));
    assert_eq!(listed(&text, &["--ambiguous"]).await.len(), 1, "it stays known that one outcome was not");
}

// Guarantee: requests.crash
#[tokio::test(flavor = "multi_thread")]
async fn resend_a_request_left_by_a_crash_goes_out_again_with_the_same_key_and_body() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|_| Answer::Hang).await.unwrap();
    let resend = relay(&provider, "on_unknown = \"resend\"", "key_memory = \"1h\"");
    let text = toml(&database, "relay", None, &resend);
    welcome(&app, "ada").await;
    killed_in_the_midst(&text, &provider).await;
    provider.decide(|_| Answer::Accept);
    let _second = Process::spawn(&text, &["run", "--replica-id", "second"]);
    eventually(PATIENCE * 3, async || having(&owner, "completed").await == 1).await;
    let received = provider.received();
    assert_eq!(received.len(), 2);
    assert_eq!(
        (&received[0].request.key, &received[0].request.body),
        (&received[1].request.key, &received[1].request.body)
    );
    assert_eq!(ambiguous(&owner).await, 1);
}

// Guarantee: requests.crash
#[tokio::test(flavor = "multi_thread")]
async fn ask_a_request_left_by_a_crash_is_completed_when_the_provider_has_it_and_sent_when_it_has_not() {
    for lost in [false, true] {
        let database = database().await;
        let (owner, app) = clients(&database).await;
        let provider = Provider::start(move |_| if lost { Answer::Lose } else { Answer::Hang }).await.unwrap();
        let sink = format!("ask = \"{}/messages/mails/{{{{ request_id }}}}\"", provider.url());
        let ask = relay(&provider, "on_unknown = \"ask\"", &sink);
        let text = toml(&database, "relay", None, &ask);
        welcome(&app, "ada").await;
        killed_in_the_midst(&text, &provider).await;
        provider.decide(|_| Answer::Accept);
        let _second = Process::spawn(&text, &["run", "--replica-id", "second"]);
        eventually(PATIENCE * 3, async || having(&owner, "completed").await == 1).await;
        assert_eq!(provider.count(), if lost { 2 } else { 1 }, "lost: {lost}");
        let id: String = owner.query_one("SELECT provider_id FROM outbox.request", &[]).await.unwrap().get(0);
        assert_eq!((id.as_str(), ambiguous(&owner).await), (if lost { "m-1" } else { "m-0" }, 1));
    }
}

// Guarantee: failures.cancelled-request
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_cut_while_the_provider_has_it_is_an_unknown_outcome() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|_| Answer::Hang).await.unwrap();
    let relay = super::relay(&provider, "", "").replace("\"2s\"", "\"60s\"").replace("\"1s\"", "\"30s\"");
    let text = toml(&database, "relay", None, &format!("{relay}[shutdown]\ngrace = \"1s\"\n"));
    welcome(&app, "ada").await;
    let mut process = Process::spawn(&text, &["run"]);
    eventually(PATIENCE * 3, async || provider.count() == 1).await;
    process.signal(Signal::TERM);
    process.wait().await;
    assert_eq!((having(&owner, "unknown").await, ambiguous(&owner).await), (1, 1));
}

// Guarantee: requests.silence
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_does_not_come_is_an_unknown_outcome_like_a_crash() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|request| match request.body.contains("ada") {
        true => Answer::Hang,
        false => Answer::Accept,
    })
    .await
    .unwrap();
    let text = toml(&database, "relay", None, &relay(&provider, "", ""));
    welcome(&app, "ada").await;
    welcome(&app, "bob").await;
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!(code, Some(1), "{log}");
    assert_eq!((having(&owner, "unknown").await, having(&owner, "completed").await), (1, 1), "{log}");
    assert_eq!(listed(&text, &["--unknown"]).await[0]["error"]["code"], "timeout");
    let (_, out, _) = outbox_relay(&text, &["status", "-o", "json"]).await;
    assert_eq!(crate::support::outside::json(&out)["cursors"][0]["unknown_outcomes"], 1);
}

// Guarantee: requests.key-memory
#[tokio::test(flavor = "multi_thread")]
async fn automatic_tries_end_before_the_provider_forgets_the_key() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|_| Answer::Refuse(500)).await.unwrap();
    let text = toml(&database, "relay", None, &relay(&provider, "on_unknown = \"resend\"", "key_memory = \"1h\""));
    let (id, ..) = welcome(&app, "ada").await;
    assert_eq!(outbox_relay(&text, &["run", "--once"]).await.0, Some(1));
    // Long ago enough, less the time that one more try may take.
    owner
        .batch_execute("UPDATE outbox.request SET first_tried_at = now() - interval '59 minutes 58 seconds'")
        .await
        .unwrap();
    provider.decide(|_| Answer::Accept);
    assert_eq!(outbox_relay(&text, &["run", "--once"]).await.0, Some(1));
    assert_eq!((having(&owner, "unknown").await, provider.count()), (1, 1));
    assert_eq!(listed(&text, &["--unknown"]).await[0]["error"]["code"], "key_forgotten");
    // A person decides, and the receiver gets the key again.
    assert_eq!(outbox_relay(&text, &["request", "redrive", &id, "--yes"]).await.0, Some(0));
    assert_eq!(outbox_relay(&text, &["run", "--once"]).await.0, Some(0));
    assert_eq!((having(&owner, "completed").await, provider.count()), (1, 2));
}

// Guarantee: requests.key-memory
#[tokio::test(flavor = "multi_thread")]
async fn request_settled_as_lost_after_its_key_was_forgotten_is_sent_when_a_caller_retries_it() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|_| Answer::Refuse(500)).await.unwrap();
    let text = toml(&database, "relay", None, &relay(&provider, "on_unknown = \"resend\"", "key_memory = \"1h\""));
    let (id, ..) = welcome(&app, "ada").await;
    assert_eq!(outbox_relay(&text, &["run", "--once"]).await.0, Some(1));
    owner.batch_execute("UPDATE outbox.request SET first_tried_at = now() - interval '1 hour'").await.unwrap();
    assert_eq!(outbox_relay(&text, &["run", "--once"]).await.0, Some(1));
    assert_eq!(listed(&text, &["--unknown"]).await[0]["error"]["code"], "key_forgotten");
    assert_eq!(outbox_relay(&text, &["request", "settle", &id, "--lost", "--yes"]).await.0, Some(0));
    let sql = "SELECT status FROM outbox.enqueue_once('ada:welcome', 'ada', 'welcome', retry_failed => true)";
    assert_eq!(app.query_one(sql, &[]).await.unwrap().get::<_, &str>(0), "pending");
    provider.decide(|_| Answer::Accept);
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!((code, having(&owner, "completed").await), (Some(0), 1), "{log}");
    let received = provider.received();
    assert_eq!(received.len(), 2);
    let sent = received.iter().map(|one| (&one.request.key, &one.request.body)).collect::<Vec<_>>();
    assert_eq!(sent[0], sent[1], "the receiver may know its key after all");
    assert_eq!(ambiguous(&owner).await, 1, "it stays known that one outcome was not");
}

// Guarantee: requests.silence
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_cannot_be_reached_makes_nothing_unknown_whatever_the_policy() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|_| Answer::Accept).await.unwrap();
    let away = relay(&provider, "", "").replace(&provider.url(), "http://127.0.0.1:9");
    let process = Process::spawn(&toml(&database, "relay", None, &away), &["run"]);
    for user in ["ada", "bob", "eve", "joe", "kim"] {
        welcome(&app, user).await;
    }
    eventually(PATIENCE * 3, async || process.log().matches("send failed").count() > 3).await;
    // They wait for their next try, and are late all the same.
    let (_, out, _) = outbox_relay(&toml(&database, "relay", None, &away), &["status", "-o", "json"]).await;
    let cursor = &crate::support::outside::json(&out)["cursors"][0];
    assert_eq!(cursor["backlog_rows"], 5, "{out}");
    assert!(cursor["lag_seconds"].as_f64().unwrap() > 0.1, "{out}");
    let (_, why, _) = outbox_relay(&toml(&database, "relay", None, &away), &["cursor", "why", "mails"]).await;
    assert!(why.contains("connect"), "{why}");
    drop(process);
    assert_eq!(having(&owner, "unknown").await, 0);
    let sql = "SELECT count(*) FROM outbox.request WHERE ambiguous > 0";
    assert_eq!(owner.query_one(sql, &[]).await.unwrap().get::<_, i64>(0), 0);
    let text = toml(&database, "relay", None, &relay(&provider, "", ""));
    let _process = Process::spawn(&text, &["run"]);
    eventually(PATIENCE * 3, async || having(&owner, "completed").await + having(&owner, "unknown").await == 5).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_after_a_silence_leaves_the_request_unknown_and_its_body_as_it_was() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|request| match request.attempt {
        1 => Answer::Hang,
        2 => Answer::Refuse(409),
        _ => Answer::Refuse(422),
    })
    .await
    .unwrap();
    let text = toml(&database, "relay", None, &relay(&provider, "on_unknown = \"resend\"", "key_memory = \"1h\""));
    let (id, ..) = welcome(&app, "ada").await;
    let process = Process::spawn(&text, &["run"]);
    eventually(PATIENCE * 3, async || having(&owner, "unknown").await == 1).await;
    drop(process);
    assert_eq!(provider.count(), 3, "409 says that the first try is still at work");
    assert_eq!(welcome(&app, "ada").await.1, "unknown");
    assert_eq!(outbox_relay(&text, &["request", "redrive", &id, "--yes"]).await.0, Some(0));
    let kept: bool = owner.query_one("SELECT body IS NOT NULL FROM outbox.request", &[]).await.unwrap().get(0);
    assert!(kept, "the receiver may know its key");
}
