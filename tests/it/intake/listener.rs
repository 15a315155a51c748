//! The intake's listener: slow and vanishing clients, outages, beginnings and ends.

use std::time::Duration;

use outbox_testkit::postgres::{Options, Postgres};
use rustix::process::Signal;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::front::{Front, TOKEN, answer, welcome};
use crate::support::outside::{client, finding, get, json as document, listener};
use crate::support::proxy::{Cut, Proxy};
use crate::support::relays::toml_of;
use crate::support::servers::prepare;
use crate::support::{Database, PATIENCE, Process, database, eventually, outbox_relay, toml};

fn call(key: &str) -> serde_json::Value {
    json!({ "dedupe_key": key, "user_id": "ada", "template": "welcome" })
}

/// The bytes of a call whose body has this length at least.
fn head(length: &str) -> Vec<u8> {
    format!(
        "POST /v1/requests HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\ncontent-type: application/json\r\n{length}\r\n\r\n"
    )
    .into_bytes()
}

/// The status that these bytes are answered with, without sending more.
async fn ask(front: &Front, bytes: &[u8]) -> u16 {
    let mut stream = TcpStream::connect(front.url.trim_start_matches("http://")).await.unwrap();
    let _ = stream.write_all(bytes).await;
    let mut first = vec![0; 64];
    let read = tokio::time::timeout(PATIENCE * 2, stream.read(&mut first)).await.expect("an answer").unwrap();
    let text = String::from_utf8_lossy(&first[..read]).into_owned();
    text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
}

/// One when a call has met the lock that an open transaction holds.
async fn waiting(owner: &tokio_postgres::Client) -> i64 {
    // A call is tried for two milliseconds at a time, too short to be observed: what its session has asked last stays.
    let sql = "SELECT count(*) FROM (SELECT FROM pg_stat_activity AS a, pg_stat_activity AS held \
               WHERE a.datname = current_database() AND held.datname = a.datname AND held.state = 'idle in transaction' \
               AND a.application_name LIKE 'outbox-relay/%' AND a.query LIKE '%enqueue_once%' AND a.query_start > held.query_start \
               LIMIT 1) AS one";
    owner.query_one(sql, &[]).await.unwrap().get(0)
}

// Guarantee: intake.large-bodies
#[tokio::test(flavor = "multi_thread")]
async fn a_large_body_is_refused_before_it_is_sent_and_a_slow_one_when_its_time_is_over() {
    let database = database().await;
    let _owner = welcome(&database).await;
    let front = Front::start(&database, "body_limit = \"1KiB\"\ntimeout = \"1s\"").await;
    assert_eq!(ask(&front, &head("content-length: 10000000000")).await, 413, "not a byte of the body was sent");
    let chunk = [head("transfer-encoding: chunked"), format!("800\r\n{}", "x".repeat(0x800)).into_bytes()].concat();
    assert_eq!(ask(&front, &chunk).await, 413, "and the end of this one neither");
    assert_eq!(ask(&front, &[head("content-length: 100"), b"{".to_vec()].concat()).await, 408);
    eventually(PATIENCE, || async { front.post(&call("k")).await.status == 202 }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn garbled_chunks_are_told_from_a_body_that_is_too_large() {
    let database = database().await;
    let _owner = welcome(&database).await;
    let front = Front::start(&database, "body_limit = \"1KiB\"").await;
    for chunks in ["zz\r\n{}\r\n0\r\n\r\n", "2\r\n{}{}\r\n0\r\n\r\n", "-1\r\n"] {
        let garbled = [head("transfer-encoding: chunked"), chunks.as_bytes().to_vec()].concat();
        assert_eq!(ask(&front, &garbled).await, 400, "{chunks:?}");
    }
    assert_eq!(front.post(&call("k")).await.status, 202);
}

// Guarantee: intake.disconnect
#[tokio::test(flavor = "multi_thread")]
async fn clients_that_go_away_cost_neither_a_connection_nor_what_they_asked_for() {
    let database = database().await;
    let mut owner = welcome(&database).await;
    let front = Front::start(&database, "connections = 1\ntimeout = \"20s\"").await;
    let watcher = database.connect("postgres").await;
    let sessions = "SELECT array_agg(pid ORDER BY pid)::text FROM pg_stat_activity WHERE datname = current_database() \
                    AND application_name LIKE 'outbox-relay/%' AND query LIKE '%enqueue_once%'";
    assert_eq!(front.post(&call("first")).await.status, 202);
    let before: Option<String> = watcher.query_one(sessions, &[]).await.unwrap().get(0);
    let held = owner.transaction().await.unwrap();
    held.batch_execute("SELECT outbox.enqueue_once('k', 'ada', 'welcome')").await.unwrap();
    let body = call("k").to_string();
    let mut stream = TcpStream::connect(front.url.trim_start_matches("http://")).await.unwrap();
    stream.write_all(&[head(&format!("content-length: {}", body.len())), body.into_bytes()].concat()).await.unwrap();
    eventually(PATIENCE, || async { waiting(&watcher).await == 1 }).await;
    drop(stream);
    held.rollback().await.unwrap();
    let made = "SELECT FROM outbox.request WHERE dedupe_key = 'k'";
    eventually(PATIENCE, || async { watcher.query(made, &[]).await.unwrap().len() == 1 }).await;
    assert_eq!(front.post(&call("last")).await.status, 202);
    let after: Option<String> = watcher.query_one(sessions, &[]).await.unwrap().get(0);
    assert_eq!(before, after, "the same sessions");
}

// Guarantee: intake.nothing-recorded
#[tokio::test(flavor = "multi_thread")]
async fn while_the_database_is_away_calls_are_told_to_come_again_and_then_they_succeed() {
    let mut postgres = Postgres::start(Options::default()).await.unwrap();
    prepare(&postgres).await;
    let owner = postgres.connect("postgres", "template_outbox").await.unwrap();
    owner.batch_execute("INSERT INTO outbox.template (name, relay) VALUES ('welcome', 'mail')").await.unwrap();
    let front = Front::of(&toml_of(&postgres.url("relay", "template_outbox"), None, ""), "", "info").await;
    assert_eq!(front.post(&call("k")).await.status, 202);
    postgres.kill9().await.unwrap();
    eventually(PATIENCE, || async { front.post(&call("l")).await.status == 503 }).await;
    let refused = front.post(&call("l")).await;
    assert_eq!((refused.status, &refused.body["type"]), (503, &"/problems/unavailable".into()));
    assert_eq!(refused.headers["retry-after"], "1");
    assert_eq!(front.get("/v1/requests?dedupe_key=k").await.status, 503);
    let admin = listener(&front.process).await;
    assert_eq!(get(&format!("{admin}/livez")).await.0, 200, "an outage of the database restarts nobody");
    postgres.restart().await.unwrap();
    eventually(PATIENCE, || async { front.post(&call("l")).await.status == 202 }).await;
    assert_eq!(front.get("/v1/requests?dedupe_key=k").await.status, 200);
    postgres.stop().await.unwrap();
}

// Guarantee: intake.lost-answer
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_the_database_that_is_lost_is_told_as_unknown_and_the_same_call_again_is_the_same_request() {
    for cut in [Cut::Before, Cut::After] {
        let database = database().await;
        let owner = welcome(&database).await;
        let proxy = Proxy::start_at(database.postgres.port(), cut, b"outbox.enqueue_once").await;
        let url =
            database.url("relay").replace(&format!(":{}/", database.postgres.port()), &format!(":{}/", proxy.port));
        let front = Front::of(&toml_of(&url, None, ""), "", "info").await;
        proxy.arm();
        let lost = front.post(&call("k")).await;
        assert_eq!((lost.status, &lost.body["type"]), (504, &"/problems/outcome-unknown".into()), "{cut:?}");
        assert!(lost.body["detail"].as_str().unwrap().contains("same dedupe_key or request_id"));
        if cut == Cut::After {
            let made = || async { owner.query("SELECT FROM outbox.request", &[]).await.unwrap().len() };
            eventually(PATIENCE, || async { made().await == 1 }).await;
        }
        assert_eq!((front.post(&call("k")).await.status, proxy.cuts()), (202, 1));
        assert_eq!(owner.query("SELECT FROM outbox.request", &[]).await.unwrap().len(), 1, "{cut:?}");
    }
}

// Guarantee: intake.nothing-recorded
#[tokio::test(flavor = "multi_thread")]
async fn calls_that_wait_for_a_lock_or_for_a_connection_are_told_that_nothing_was_recorded() {
    let database = database().await;
    let mut owner = welcome(&database).await;
    let front = Front::start(&database, "connections = 1\ntimeout = \"2s\"").await;
    eventually(PATIENCE, || async { front.post(&call("first")).await.status == 202 }).await;
    let held = owner.transaction().await.unwrap();
    held.batch_execute("SELECT outbox.enqueue_once('k', 'ada', 'welcome')").await.unwrap();
    // The first waits for the lock, the second for the only connection.
    let call = call("k");
    let (one, two) = tokio::join!(front.post(&call), front.post(&call));
    for answer in [one, two] {
        assert_eq!((answer.status, &answer.body["type"]), (503, &"/problems/unavailable".into()), "{answer:?}");
        assert!(answer.body["detail"].as_str().unwrap().contains("nothing was recorded"), "{answer:?}");
    }
    held.rollback().await.unwrap();
    eventually(PATIENCE, || async { front.post(&call).await.status == 202 }).await;
}

// Guarantee: intake.shutdown
#[tokio::test(flavor = "multi_thread")]
async fn at_the_end_calls_in_flight_are_answered_and_no_connection_is_accepted() {
    let database = database().await;
    let mut owner = welcome(&database).await;
    let watcher = database.connect("postgres").await;
    let mut front = Front::start(&database, "timeout = \"20s\"").await;
    assert_eq!(front.post(&call("first")).await.status, 202);
    let held = owner.transaction().await.unwrap();
    held.batch_execute("SELECT outbox.enqueue_once('k', 'ada', 'welcome')").await.unwrap();
    let request = front.call(&call("k"));
    let in_flight = tokio::spawn(answer(request));
    eventually(PATIENCE, || async { waiting(&watcher).await == 1 }).await;
    front.process.signal(Signal::TERM);
    let address = front.url.trim_start_matches("http://").to_owned();
    eventually(PATIENCE, || async { TcpStream::connect(&address).await.is_err() }).await;
    held.commit().await.unwrap();
    let answered = in_flight.await.unwrap().expect("an answer");
    assert_eq!((answered.status, &answered.body["status"]), (202, &"pending".into()));
    assert_eq!(front.process.wait().await, Some(0), "{}", front.process.log());
}

// Guarantee: intake.large-bodies
#[tokio::test(flavor = "multi_thread")]
async fn silent_clients_are_cut_and_those_that_go_on_are_served() {
    let database = database().await;
    let _owner = welcome(&database).await;
    let front = Front::start(&database, "timeout = \"10s\"").await;
    let mut silent = Vec::new();
    for _ in 0..100 {
        let mut stream = TcpStream::connect(front.url.trim_start_matches("http://")).await.unwrap();
        stream.write_all(b"POST /v1/requests HTTP/1.1\r\nx: ").await.unwrap();
        silent.push(stream);
    }
    assert_eq!(front.post(&call("k")).await.status, 202);
    for mut stream in silent {
        let end = tokio::time::timeout(Duration::from_secs(60), stream.read_to_end(&mut Vec::new())).await;
        assert!(end.is_ok(), "cut, although it said nothing");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_keeps_the_intake_from_its_work_ends_the_start_and_is_found_by_check() {
    let database = database().await;
    let _owner = welcome(&database).await;
    let front = Front::start(&database, "").await;
    let address = front.url.trim_start_matches("http://");
    let admin = listener(&front.process).await;
    eventually(PATIENCE, || async { get(&format!("{admin}/readyz")).await.0 == 200 }).await;
    let taken =
        front.toml.replace("listen = \"127.0.0.1:0\"\ntoken_file", &format!("listen = \"{address}\"\ntoken_file"));
    let (code, _, log) = outbox_relay(&taken, &["run"]).await;
    let said = format!("cannot listen on {address}: address already in use (set [intake] listen)");
    assert!(code == Some(1) && log.contains(&said), "{log}");

    let (code, _, log) = outbox_relay(&front.toml, &["run", "--once"]).await;
    assert!(code == Some(2) && log.contains("no relay is configured"), "a job takes no requests: {log}");

    let open = front.toml.replace("listen = \"127.0.0.1:0\"\ntoken_file", "listen = \"0.0.0.0:0\"\ntoken_file");
    let (code, out, _) = outbox_relay(&open, &["check", "-o", "json"]).await;
    let found = document(&out);
    assert_eq!(code, Some(0), "{out}");
    assert_eq!(finding(&found, "intake_plain_http").unwrap()["level"], "warn");
    assert_eq!(finding(&found, "intake_tokens").unwrap()["level"], "ok");
    let process = Process::spawn(&open, &["run"]);
    eventually(PATIENCE, || async { process.log().contains("plain HTTP: put TLS in front of it") }).await;

    // Without a relay of its own, beside a request that another deployment sends.
    assert_eq!(front.post(&call("k")).await.status, 202);
    let (code, out, _) = outbox_relay(&front.toml, &["check", "-o", "json"]).await;
    assert!(code == Some(0) && out.contains("1 request"), "{out}");

    std::fs::write(&front.tokens, "canaryShort\n").unwrap();
    let (code, _, log) = outbox_relay(&front.toml, &["run"]).await;
    assert!(code == Some(1) && log.contains("line 1 is no token") && !log.contains("canary"), "{log}");
    let (code, out, _) = outbox_relay(&front.toml, &["check", "-o", "json"]).await;
    assert_eq!((code, &finding(&document(&out), "intake_tokens").unwrap()["level"]), (Some(3), &"error".into()));

    let without = toml(&database, "relay", None, "");
    let (code, _, log) = outbox_relay(&without, &["run"]).await;
    assert!(code == Some(2) && log.contains("no relay is configured"), "{log}");
    let described = answer(client().get(format!("{}/openapi.json", front.url))).await.unwrap();
    assert_eq!(described.status, 200);
}

// Guarantee: intake.large-ledger
#[tokio::test(flavor = "multi_thread")]
async fn a_call_takes_as_long_beside_many_requests_as_beside_few() {
    let database: Database = database().await;
    let owner = welcome(&database).await;
    owner
        .batch_execute(
            "INSERT INTO outbox.request (request_id, dedupe_key, holds_key, user_id, template, parameters, relay, not_before) \
             SELECT gen_random_uuid(), 'k' || n, true, 'u', 'welcome', '{}', 'mail', now() FROM generate_series(1, 50000) AS n; \
             ANALYZE outbox.request; SELECT pg_stat_reset()",
        )
        .await
        .unwrap();
    let front = Front::start(&database, "connections = 1").await;
    let id = "01989b3c-8c1e-7d4f-9a53-1f0e6a1d2b3c";
    for key in 0..20 {
        let mut call = call(&format!("new{key}"));
        if key == 0 {
            call["request_id"] = id.into();
        }
        assert_eq!(front.post(&call).await.status, 202);
        assert_eq!(front.get(&format!("/v1/requests?dedupe_key=new{key}")).await.status, 200);
    }
    assert_eq!(front.get(&format!("/v1/requests/{id}")).await.status, 200);
    drop(front);
    // Sessions report what they have read when they end, at the latest.
    let sql = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables WHERE relid = 'outbox.request'::regclass \
               AND n_tup_ins >= 20";
    eventually(PATIENCE, || async { owner.query_opt(sql, &[]).await.unwrap().is_some() }).await;
    let read: i64 = owner.query_one(sql, &[]).await.unwrap().get(0);
    assert!(read < 5_000, "{read} rows were read");
}
