//! `cursor why` in real situations.

use serde_json::Value;
use tokio_postgres::Client;

use super::{ends, insert};
use crate::support::gateway::{Gateway, Mood, sms_relay};
use crate::support::outside::{halted, json, printed, stdout_relay};
use crate::support::{CLOCK, PATIENCE, Process, bookings, database, eventually, outbox_relay, toml};

/// Asks until the answer is of this reason; the exit code must fit.
async fn why(text: &str, name: &str, reason: &str, well: bool) -> Value {
    let mut answer = Value::Null;
    for _ in 0..10 {
        let (code, out, log) = outbox_relay(text, &["cursor", "why", name, "-o", "json"]).await;
        assert!(!out.is_empty(), "{log}");
        answer = json(&out);
        assert_eq!(code, Some(if answer["ok"] == true { 0 } else { 3 }), "{answer}");
        if answer["reason"] == reason {
            break;
        }
    }
    assert_eq!((&answer["reason"], &answer["ok"]), (&reason.into(), &well.into()), "{answer}");
    answer
}

fn advises(answer: &Value, line: &str) -> bool {
    answer["next_steps"].as_array().unwrap().iter().any(|said| said == line)
}

async fn pid(client: &Client) -> i32 {
    client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0)
}

/// A text whose numbers do not matter.
fn shape(text: &str) -> String {
    let mut shape: String = text.chars().map(|sign| if sign.is_ascii_digit() { '#' } else { sign }).collect();
    while shape.contains("##") {
        shape = shape.replace("##", "#");
    }
    shape
}

// Guarantee: commands.why
#[tokio::test(flavor = "multi_thread")]
async fn why_names_the_stuck_writer_whose_end_lets_the_cursor_go_on() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("booking_events", ""));
    let process = Process::spawn(&text, &["run"]);
    insert(&owner, 1).await;
    eventually(PATIENCE, || async { printed(&process, "booking_events") == ["1"] }).await;
    why(&text, "booking_events", "idle", true).await;

    let mut writer = database.connect("app").await;
    writer.batch_execute("SET application_name = 'nightly-import'").await.unwrap();
    let stuck = pid(&writer).await;
    let open = writer.transaction().await.unwrap();
    open.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    insert(&owner, 2).await;
    let answer = why(&text, "booking_events", "held", false).await;
    let sentence = answer["summary"].as_str().unwrap();
    assert!(sentence.contains(&format!("booking_events is held by pid {stuck} (nightly-import)")), "{sentence}");
    assert!(sentence.contains("2 rows wait"), "{sentence}");
    let cure = format!("SELECT pg_terminate_backend({stuck});");
    assert!(advises(&answer, &cure), "{answer}");
    let (out, _) = ends(3, &text, &["cursor", "why", "booking_events"]).await;
    assert!(out.lines().next().is_some_and(|line| line.contains(sentence.split(", open").next().unwrap())), "{out}");
    assert!(out.contains(&format!("\n     {cure}\n")), "{out}");
    let readme = std::fs::read_to_string("README.md").unwrap();
    assert!(shape(&readme).contains(&shape(&out)), "README.md does not show what the program prints: {out}");
    owner.batch_execute(&cure).await.unwrap();
    eventually(PATIENCE, || async { printed(&process, "booking_events").len() == 3 }).await;
    why(&text, "booking_events", "idle", true).await;
}

// Guarantee: commands.why
#[tokio::test(flavor = "multi_thread")]
async fn why_offers_to_end_only_the_transaction_that_holds_the_cursor_not_short_ones_beside_it() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    // This role may not read when others' transactions began.
    let text = toml(&database, "relay", None, &stdout_relay("s", ""));
    let process = Process::spawn(&text, &["run"]);
    insert(&owner, 1).await;
    eventually(PATIENCE, || async { printed(&process, "s") == ["1"] }).await;
    let mut night = database.connect("app").await;
    let stuck = pid(&night).await;
    let open = night.transaction().await.unwrap();
    open.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    insert(&owner, 1).await;
    let mut short = Vec::new();
    for _ in 0..4 {
        let writer = database.connect("app").await;
        short.push(tokio::spawn(async move {
            loop {
                let one = "BEGIN; INSERT INTO bookings DEFAULT VALUES; SELECT pg_sleep(0.05); COMMIT";
                writer.batch_execute(one).await.unwrap();
            }
        }));
    }
    for _ in 0..4 {
        let answer = why(&text, "s", "held", false).await;
        let steps: Vec<&str> = answer["next_steps"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let ends: Vec<_> = steps.iter().filter(|step| step.contains("pg_terminate_backend")).collect();
        assert_eq!(ends, [&format!("SELECT pg_terminate_backend({stuck});")], "{answer}");
        assert!(answer["summary"].as_str().unwrap().contains("open for at least"), "{answer}");
    }
    short.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test(flavor = "multi_thread")]
async fn why_names_a_prepared_transaction_by_the_line_that_ends_it() {
    let postgres = outbox_testkit::postgres::Postgres::start(outbox_testkit::postgres::Options {
        settings: vec![("max_prepared_transactions".to_owned(), "2".to_owned())],
        ..Default::default()
    })
    .await
    .unwrap();
    crate::support::servers::prepare(&postgres).await;
    let owner = postgres.connect("postgres", "template_outbox").await.unwrap();
    owner
        .batch_execute(
            "CREATE TABLE bookings (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, \
             created_at timestamptz NOT NULL DEFAULT clock_timestamp(), payload text); GRANT SELECT ON bookings TO relay",
        )
        .await
        .unwrap();
    let text = crate::support::relays::toml_of(&postgres.url("relay", "template_outbox"), None, &stdout_relay("s", ""));
    let _process = Process::spawn(&text, &["run"]);
    let made = "SELECT EXISTS (SELECT FROM outbox.cursor)";
    eventually(PATIENCE * 2, || async { owner.query_one(made, &[]).await.unwrap().get(0) }).await;
    owner.batch_execute("BEGIN; INSERT INTO bookings DEFAULT VALUES; PREPARE TRANSACTION 'two''phase'").await.unwrap();
    insert(&owner, 1).await;
    let answer = why(&text, "s", "held", false).await;
    assert!(answer["summary"].as_str().unwrap().contains("the prepared transaction two'phase"), "{answer}");
    let cure = "ROLLBACK PREPARED 'two''phase';";
    assert!(advises(&answer, cure), "{answer}");
    owner.batch_execute(cure).await.unwrap();
    why(&text, "s", "idle", true).await;
    owner.batch_execute("BEGIN; SELECT FROM outbox.cursor FOR UPDATE; PREPARE TRANSACTION 'lock'").await.unwrap();
    insert(&owner, 1).await;
    let answer = why(&text, "s", "lock_held", false).await;
    assert!(answer["summary"].as_str().unwrap().contains("the prepared transaction lock"), "{answer}");
    assert!(advises(&answer, "ROLLBACK PREPARED 'lock';"), "{answer}");
    owner.batch_execute("ROLLBACK PREPARED 'lock'").await.unwrap();
    why(&text, "s", "idle", true).await;
    drop(_process);
    postgres.stop().await.unwrap();
}

// Guarantee: commands.why
#[tokio::test(flavor = "multi_thread")]
async fn why_tells_poison_from_pause_from_nobody_there() {
    let (database, gateway) = (database().await, Gateway::start().await);
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute("ALTER TABLE bookings ADD phone text DEFAULT '+1'").await.unwrap();
    gateway.set(Mood::Refuse(400, r#"{"code":21211}"#));
    let text = toml(&database, "relay", None, &sms_relay("sms", &gateway, ""));
    why(&text, "sms", "missing", false).await;
    let process = Process::spawn(&text, &["run"]);
    insert(&owner, 2).await;
    halted(&owner, "sms").await;
    let answer = why(&text, "sms", "halted", false).await;
    assert!(answer["summary"].as_str().unwrap().contains("halted at message 1 since"), "{answer}");
    assert!(answer["summary"].as_str().unwrap().contains("poison twilio_21211"), "{answer}");
    for verb in ["resume", "skip"] {
        assert!(advises(&answer, &format!("outbox-relay cursor {verb} sms")), "{answer}");
    }
    ends(0, &text, &["cursor", "pause", "sms"]).await;
    let answer = why(&text, "sms", "paused", false).await;
    assert!(answer["summary"].as_str().unwrap().contains("it is halted, too"), "{answer}");
    gateway.set(Mood::Refuse(503, "{}"));
    ends(0, &text, &["cursor", "resume", "sms"]).await;
    let answer = {
        let sql = "SELECT EXISTS (SELECT FROM outbox.cursor_status WHERE last_error ->> 'code' = 'http_503')";
        eventually(PATIENCE, || async { owner.query_one(sql, &[]).await.unwrap().get(0) }).await;
        let (code, out, _) = outbox_relay(&text, &["cursor", "why", "sms", "-o", "json"]).await;
        assert_eq!(code, Some(3), "{out}");
        json(&out)
    };
    assert!(["backing_off", "circuit_open"].contains(&answer["reason"].as_str().unwrap()), "{answer}");
    gateway.set(Mood::Accept);
    eventually(PATIENCE * 2, || async { gateway.accepted().len() == 2 }).await;
    why(&text, "sms", "idle", true).await;
    drop(process);
    insert(&owner, 1).await;
    let gone = "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE application_name LIKE 'outbox-relay/%' \
                AND datname = current_database())";
    eventually(PATIENCE, || async { owner.query_one(gone, &[]).await.unwrap().get(0) }).await;
    let answer = why(&text, "sms", "no_replica", false).await;
    assert!(answer["summary"].as_str().unwrap().contains("1 row waits"), "{answer}");
    let (_, log) = ends(1, &text, &["cursor", "why", "nobody"]).await;
    assert!(log.contains("there is no cursor nobody"), "{log}");
}

// Guarantee: commands.why
#[tokio::test(flavor = "multi_thread")]
async fn why_names_the_process_that_has_the_lock_and_does_not_advance() {
    let database = database().await;
    let mut owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("s", ""));
    let process = Process::spawn(&text, &["run"]);
    insert(&owner, 1).await;
    eventually(PATIENCE, || async { printed(&process, "s") == ["1"] }).await;
    let by = pid(&owner).await;
    let writer = database.connect("app").await;
    let lock = owner.transaction().await.unwrap();
    lock.batch_execute("SELECT FROM outbox.cursor FOR UPDATE").await.unwrap();
    writer.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    let answer = why(&text, "s", "lock_held", false).await;
    assert!(answer["summary"].as_str().unwrap().contains(&format!("(pid {by})")), "{answer}");
    assert!(advises(&answer, &format!("SELECT pg_terminate_backend({by});")), "{answer}");
    lock.rollback().await.unwrap();
    eventually(PATIENCE, || async { printed(&process, "s") == ["1", "2"] }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn show_tells_everything_that_is_written_down_about_a_cursor() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("s", ""));
    insert(&owner, 2).await;
    ends(0, &text, &["run", "--once"]).await;
    ends(0, &text, &["cursor", "pause", "s"]).await;
    let (out, _) = ends(0, &text, &["cursor", "show", "s", "-o", "json"]).await;
    let shown = json(&out);
    assert_eq!((&shown["position"]["id"], &shown["state"]), (&"2".into(), &"paused".into()));
    assert_eq!(shown["identity"]["table"], "public.bookings");
    assert_eq!(shown["change"], serde_json::json!({ "requested": 0, "applied": 0, "pending": false }));
    assert!(shown["paused_at"].is_string() && shown["paused_by"].is_string() && shown["created_at"].is_string());
    assert_eq!(shown["relations"].as_array().unwrap().len(), 2);
    let (out, _) = ends(0, &text, &["cursor", "show", "s"]).await;
    for line in ["identity.table", "position.id", "paused_by", "state"] {
        assert!(out.lines().any(|shown| shown.starts_with(line)), "{line}: {out}");
    }
    let (_, log) = ends(1, &text, &["cursor", "show", "nobody"]).await;
    assert!(log.contains("there is no cursor nobody"), "{log}");
}

// Guarantee: commands.why
#[tokio::test(flavor = "multi_thread")]
async fn why_says_that_a_cursor_moves_however_slowly_and_answers_before_its_backlog_is_gone() {
    let (database, gateway) = (database().await, Gateway::start().await);
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute("ALTER TABLE bookings ADD phone text DEFAULT '+1'").await.unwrap();
    let text = toml(&database, "relay", None, &sms_relay("sms", &gateway, "rate_per_second = 2"));
    insert(&owner, 500).await;
    let _process = Process::spawn(&text, &["run"]);
    eventually(PATIENCE * 2, || async { !gateway.accepted().is_empty() }).await;
    let answer = why(&text, "sms", "moving", true).await;
    assert!(answer["backlog_rows"].as_i64().unwrap() > 100, "{answer}");
    assert_eq!(answer["next_steps"], serde_json::json!([]));
    let (out, _) = ends(0, &text, &["cursor", "why", "sms"]).await;
    assert!(out.starts_with("sms is moving (") && out.lines().count() == 1, "{out}");
}
