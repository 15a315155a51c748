//! What is right is recorded once, and answered by what has become of it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::database;
use crate::support::front::{Answer, Front, welcome};
use crate::support::outside::keys;

const ID: &str = "01989b3c-8c1e-7d4f-9a53-1f0e6a1d2b3c";

fn id(answer: &Answer) -> &str {
    answer.body["request_id"].as_str().unwrap()
}

// Guarantee: intake.states
#[tokio::test(flavor = "multi_thread")]
async fn each_of_the_five_states_has_its_answer_and_only_retry_failed_arms_a_failed_request_again() {
    let database = database().await;
    let owner = welcome(&database).await;
    let front = Front::start(&database, "").await;
    let call = json!({ "dedupe_key": "ada:welcome", "user_id": "ada", "template": "welcome" });
    let first = front.post(&call).await;
    assert_eq!(
        (first.status, &first.body["status"], &first.body["already_sent"]),
        (202, &"pending".into(), &false.into())
    );
    assert_eq!(keys(&first.body), BTreeSet::from(["request_id", "status", "already_sent"]));
    let location = first.headers["location"].to_str().unwrap().to_owned();
    assert_eq!(location, format!("/v1/requests/{}", id(&first)));
    assert_eq!(front.get(&location).await.body["request_id"], first.body["request_id"]);
    for (status, code) in [("pending", 202), ("processing", 202), ("failed", 202), ("unknown", 202), ("completed", 200)]
    {
        let sql = format!(
            "UPDATE outbox.request SET status = '{status}', token = 't', claimed_by = 'r', expires_at = now(), \
             completed_at = CASE WHEN '{status}' = 'completed' THEN now() END"
        );
        owner.batch_execute(&sql).await.unwrap();
        let again = front.post(&call).await;
        assert_eq!((again.status, &again.body["status"]), (code, &status.into()));
        assert_eq!((&again.body["already_sent"], id(&again)), (&(code == 200).into(), id(&first)));
    }
    owner.batch_execute("UPDATE outbox.request SET status = 'failed', completed_at = NULL").await.unwrap();
    let mut retried = call;
    retried["retry_failed"] = true.into();
    let answer = front.post(&retried).await;
    assert_eq!((answer.status, &answer.body["status"], id(&answer)), (202, &"pending".into(), id(&first)));
    assert_eq!(owner.query("SELECT FROM outbox.request", &[]).await.unwrap().len(), 1);
}

// Guarantee: intake.unchanged
#[tokio::test(flavor = "multi_thread")]
async fn every_member_arrives_in_the_ledger_as_it_was_sent() {
    let database = database().await;
    let owner = welcome(&database).await;
    let front = Front::start(&database, "").await;
    let body = format!(
        r#"{{"dedupe_key":"k","user_id":"Ada ☕ \"'\\","template":"welcome","request_id":"{ID}",
            "parameters":{{"n":123456789012345678901234567890.10,"t":"\u00e9"}},
            "not_before":"2031-01-02T03:04:05.000006+01:00","dedupe_for":"36h"}}"#
    );
    let request =
        front.request(reqwest::Method::POST, "/v1/requests").header("content-type", "application/JSON; charset=utf-8");
    let answer = crate::support::front::answer(request.body(body)).await.unwrap();
    assert_eq!((answer.status, id(&answer)), (202, ID), "{answer:?}");
    let row = owner
        .query_one(
            "SELECT dedupe_key, user_id, template, parameters::text, relay, not_before = '2031-01-02 02:04:05.000006Z', \
             dedupe_until BETWEEN created_at + interval '35 hours 59 minutes' AND created_at + interval '36 hours 1 minute' \
             FROM outbox.request",
            &[],
        )
        .await
        .unwrap();
    let texts: Vec<String> = (0..5).map(|column| row.get(column)).collect();
    let parameters = "{\"n\": 123456789012345678901234567890.10, \"t\": \"é\"}";
    assert_eq!(texts, ["k", "Ada ☕ \"'\\", "welcome", parameters, "mail"]);
    assert!(row.get(5) && row.get(6));
}

// Guarantee: intake.without-key
#[tokio::test(flavor = "multi_thread")]
async fn without_a_key_each_call_is_a_request_of_its_own_unless_it_brings_the_id_of_one() {
    let database = database().await;
    let owner = welcome(&database).await;
    let front = Front::start(&database, "").await;
    let call = json!({ "user_id": "ada", "template": "welcome" });
    let (one, two) = (front.post(&call).await, front.post(&call).await);
    assert!(one.status == 202 && two.status == 202 && id(&one) != id(&two));
    let named = json!({ "user_id": "ada", "template": "welcome", "request_id": ID });
    for expected in ["pending", "processing", "pending"] {
        let answer = front.post(&named).await;
        assert_eq!((answer.status, id(&answer), &answer.body["status"]), (202, ID, &expected.into()));
        let sql = "UPDATE outbox.request SET token = 't', claimed_by = 'r', expires_at = now(), status = $2 WHERE request_id = $1::text::uuid";
        owner.execute(sql, &[&ID, &if expected == "pending" { "processing" } else { "pending" }]).await.unwrap();
    }
    owner.batch_execute("UPDATE outbox.request SET status = 'completed', completed_at = now()").await.unwrap();
    let sent = front.post(&named).await;
    assert_eq!((sent.status, &sent.body["already_sent"]), (200, &true.into()));
    assert_eq!(owner.query("SELECT FROM outbox.request", &[]).await.unwrap().len(), 3);
}

// Guarantee: intake.hidden
#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_shown_by_its_id_and_by_its_key_without_what_is_sent() {
    let database = database().await;
    let owner = welcome(&database).await;
    let front = Front::start(&database, "").await;
    let key = "a b+c&d=e%/é";
    let call =
        json!({ "dedupe_key": key, "user_id": "ada", "template": "welcome", "parameters": { "pin": "canaryPin" } });
    let made = front.post(&call).await;
    // As forms write it, with a plus for a blank.
    let by_key = front.get("/v1/requests?dedupe_key=a+b%2Bc%26d%3De%25%2F%C3%A9").await;
    let by_id = front.get(&format!("/v1/requests/{}", id(&made).to_uppercase())).await;
    assert_eq!((by_key.status, &by_key.body), (200, &by_id.body));
    let members = [
        "request_id",
        "dedupe_key",
        "user_id",
        "template",
        "status",
        "already_sent",
        "attempts",
        "ambiguous",
        "provider_id",
        "created_at",
        "not_before",
        "completed_at",
        "error",
    ];
    assert_eq!(keys(&by_id.body), BTreeSet::from(members));
    assert_eq!((&by_id.body["dedupe_key"], &by_id.body["error"]), (&key.into(), &Value::Null));
    assert!(!by_id.body.to_string().contains("canaryPin"));
    let error = json!({ "at": "2026-11-21T08:00:00Z", "class": "poison", "code": "c", "message": "m", "hint": null });
    owner
        .execute(
            "UPDATE outbox.request SET status = 'failed', attempts = 3, error = $1::text::jsonb",
            &[&error.to_string()],
        )
        .await
        .unwrap();
    let failed = front.get(&format!("/v1/requests/{}", id(&made))).await.body;
    assert_eq!((&failed["status"], &failed["attempts"], &failed["error"]), (&"failed".into(), &3.into(), &error));
    for path in [format!("/v1/requests/{ID}"), "/v1/requests/1".to_owned(), "/v1/requests?dedupe_key=other".to_owned()]
    {
        let answer = front.get(&path).await;
        assert_eq!((answer.status, &answer.body["type"]), (404, &"/problems/no-such-request".into()), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_counted_tells_new_requests_from_repeated_ones() {
    let database = database().await;
    let _owner = welcome(&database).await;
    let front = Front::start(&database, "").await;
    for (key, user) in [("a", "ada"), ("a", "ada"), ("b", "ada"), ("a", "eve")] {
        front.post(&json!({ "dedupe_key": key, "user_id": user, "template": "welcome" })).await;
    }
    for _ in 0..2 {
        front.post(&json!({ "user_id": "ada", "template": "welcome", "request_id": ID })).await;
    }
    let admin = crate::support::outside::listener(&front.process).await;
    let page = crate::support::outside::get(&format!("{admin}/metrics")).await.1;
    for (result, calls) in [("accepted", 3), ("repeated", 2), ("refused", 1), ("failed", 0)] {
        let line = format!("outbox_relay_intake_requests_total{{result=\"{result}\"}} {calls}");
        assert!(page.lines().any(|other| other == line), "{line} is missing in\n{page}");
    }
    assert!(page.lines().any(|line| line == "outbox_relay_intake_request_duration_seconds_count 6"), "{page}");
}
