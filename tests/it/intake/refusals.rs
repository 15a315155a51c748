//! What is wrong is refused with a problem that says so, and records nothing.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::front::{Answer, Front, TOKEN, answer, welcome, with_json};
use crate::support::outside::client;
use crate::support::{database, toml};

fn problem(answer: &Answer, status: u16, name: &str) {
    assert_eq!(answer.status, status, "{answer:?}");
    assert_eq!(answer.headers["content-type"], "application/problem+json", "{answer:?}");
    assert_eq!(answer.body["type"], format!("/problems/{name}"), "{answer:?}");
    assert_eq!(answer.body["status"], status);
    assert!(
        answer.body["title"].is_string() && answer.body["detail"].as_str().is_some_and(|detail| !detail.is_empty())
    );
    assert!(!answer.body.to_string().contains("canary"), "{answer:?}");
}

fn pointers(answer: &Answer) -> Vec<&str> {
    answer.body["errors"].as_array().unwrap().iter().map(|error| error["pointer"].as_str().unwrap()).collect()
}

// Guarantee: intake.nothing-recorded
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_body_is_refused_by_the_names_of_its_members_and_records_nothing() {
    let database = database().await;
    let owner = welcome(&database).await;
    let front = Front::start(&database, "").await;
    let post = |body: String, media: &'static str| {
        let request = front.request(Method::POST, "/v1/requests").header("content-type", media).body(body);
        async move { answer(request).await.unwrap() }
    };
    let right = json!({ "user_id": "ada", "template": "welcome" });
    let with = |member: &str, value: Value| {
        let mut body = right.clone();
        body[member] = value;
        body.to_string()
    };
    for (body, expected) in [
        (with("templet", "x".into()), "/templet"),
        (with("user_id", 5.into()), "/user_id"),
        (with("request_id", "x".into()), "/request_id"),
        (with("retry_failed", true.into()), "/retry_failed"),
        (with("parameters", Value::Null), "/parameters"),
        (r#"{"user_id":"ada"}"#.to_owned(), "/template"),
        (r#"{"user_id":"ada","user_id":"eve","template":"welcome"}"#.to_owned(), "/user_id"),
        (r#"{"user_id":"ada","template":"welcome","parameters":{"a":1e999999}}"#.to_owned(), "/parameters"),
        (r#"{"user_id":"ada","template":"welcome","parameters":{"a":"\u0000"}}"#.to_owned(), "/parameters"),
        (r#"{"user_id":"ada","template":"welcome","parameters":{"a":"\ud800"}}"#.to_owned(), "/parameters"),
        ("nonsense".to_owned(), ""),
        (String::new(), ""),
        ("[]".to_owned(), ""),
    ] {
        let answer = post(body, "application/json").await;
        problem(&answer, 400, "invalid-body");
        assert_eq!(pointers(&answer), [expected], "{answer:?}");
    }
    let deep = format!(
        r#"{{"user_id":"a","template":"welcome","parameters":{{"a":{}{}}}}}"#,
        "[".repeat(20_000),
        "]".repeat(20_000)
    );
    problem(&post(deep, "application/json").await, 400, "invalid-body");
    for media in ["text/plain", "application/jsonp", "application/x-www-form-urlencoded", ""] {
        problem(&post(right.to_string(), media).await, 415, "media-type");
    }
    let unknown = front.post(&json!({ "user_id": "ada", "template": "good bye" })).await;
    problem(&unknown, 422, "unknown-template");
    assert!(unknown.body["detail"].as_str().unwrap().contains("Known: welcome"), "{unknown:?}");
    assert_eq!(owner.query("SELECT FROM outbox.request", &[]).await.unwrap().len(), 0);
    assert_eq!(post(right.to_string(), "application/json").await.status, 202, "and the intake goes on");
}

// Guarantee: intake.conflict
#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_or_id_with_another_body_is_a_conflict_that_says_what_differs() {
    let database = database().await;
    let owner = welcome(&database).await;
    let front = Front::start(&database, "").await;
    let id = "01989b3c-8c1e-7d4f-9a53-1f0e6a1d2b3c";
    let call = json!({ "dedupe_key": "k", "user_id": "ada", "template": "welcome", "request_id": id });
    assert_eq!(front.post(&call).await.status, 202);
    for (member, value) in [("user_id", json!("eve")), ("parameters", json!({ "n": 1 })), ("dedupe_key", json!("l"))] {
        let mut other = call.clone();
        other[member] = value;
        let answer = front.post(&other).await;
        problem(&answer, 409, "another-body");
        assert!(answer.body["detail"].as_str().unwrap().contains(&format!("{member} differ")), "{answer:?}");
    }
    assert_eq!(owner.query("SELECT FROM outbox.request", &[]).await.unwrap().len(), 1);
}

// Guarantee: intake.tokens
#[tokio::test(flavor = "multi_thread")]
async fn who_has_no_token_learns_nothing_and_a_rotation_needs_no_restart() {
    let database = database().await;
    let owner = welcome(&database).await;
    let front = Front::of(&toml(&database, "relay", None, ""), "", "trace").await;
    let call = json!({ "user_id": "ada", "template": "nothing of the kind" });
    let post = |authorization: Option<String>| {
        let request = with_json(client().post(format!("{}/v1/requests", front.url)), &call);
        let request = authorization.into_iter().fold(request, |request, value| request.header("authorization", value));
        async move { answer(request).await.unwrap() }
    };
    for wrong in [None, Some("Bearer".to_owned()), Some(format!("Basic {TOKEN}")), Some(format!("Bearer {TOKEN}x"))] {
        let answer = post(wrong).await;
        problem(&answer, 401, "unauthorized");
        assert!(answer.headers["www-authenticate"].to_str().unwrap().starts_with("Bearer realm="));
    }
    for path in ["/v1/requests?dedupe_key=k", "/v1/requests/1", "/v1/requests"] {
        problem(&answer(client().get(format!("{}{path}", front.url))).await.unwrap(), 401, "unauthorized");
    }
    problem(&post(Some(format!("Bearer {TOKEN}"))).await, 422, "unknown-template");
    let next = "canaryNext0123456789";
    std::fs::write(&front.tokens, format!("{TOKEN}\n{next}\n")).unwrap();
    for both in [TOKEN, next] {
        assert_eq!(post(Some(format!("bearer {both}"))).await.status, 422, "{both}");
    }
    std::fs::write(&front.tokens, next).unwrap();
    problem(&post(Some(format!("Bearer {TOKEN}"))).await, 401, "unauthorized");
    assert_eq!(post(Some(format!("Bearer {next}"))).await.status, 422);
    std::fs::remove_file(&front.tokens).unwrap();
    problem(&post(Some(format!("Bearer {next}"))).await, 503, "unavailable");
    assert!(!front.process.log().contains("canary"), "not even at the level trace");
    assert_eq!(owner.query("SELECT FROM outbox.request", &[]).await.unwrap().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_other_path_method_and_size_is_refused_with_a_problem() {
    let database = database().await;
    let _owner = welcome(&database).await;
    let front = Front::start(&database, "").await;
    for path in ["/", "/v1", "/v1/requests/", "/v1/requests/a/b", "/metrics", "/livez", "/problems/not-found"] {
        problem(&front.get(path).await, 404, "not-found");
    }
    let json = || json!({ "user_id": "ada", "template": "welcome" }).to_string();
    for (path, allowed) in
        [("/v1/requests", "GET,HEAD,POST"), ("/v1/requests/1", "GET,HEAD"), ("/openapi.json", "GET,HEAD")]
    {
        for method in [Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS, Method::TRACE] {
            let answer = answer(front.request(method, path).body(json())).await.unwrap();
            problem(&answer, 405, "method-not-allowed");
            assert_eq!(answer.headers["allow"], allowed, "{path}");
        }
    }
    problem(&front.get(&format!("/v1/requests?dedupe_key={}", "x".repeat(5_000))).await, 414, "url-too-long");
    problem(&front.get(&format!("/v1/requests?dedupe_key={}", "x".repeat(1_025))).await, 400, "invalid-query");
    for query in [
        "",
        "?dedupe_key",
        "?dedupe_key=",
        "?key=a",
        "?dedupe_key=a&dedupe_key=b",
        "?dedupe_key=%ff",
        "?dedupe_key=%00",
    ] {
        problem(&front.get(&format!("/v1/requests{query}")).await, 400, "invalid-query");
    }
    let header = front.request(Method::GET, "/openapi.json").header("x", "y".repeat(20_000));
    problem(&answer(header).await.unwrap(), 431, "headers-too-large");
    let large = json!({ "user_id": "ada", "template": "welcome", "parameters": { "x": "y".repeat(64 << 10) } });
    let refused = front.post(&large).await;
    problem(&refused, 413, "body-too-large");
    assert_eq!(refused.body["limit_bytes"], 64 << 10);
}
