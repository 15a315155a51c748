//! What only stops one relay, until it is fixed.

use rustix::process::Signal;

use crate::support::outside::{fixed, halted, json, lines, printed, stdout_relay};
use crate::support::{
    CLOCK, Database, PATIENCE, Process, bookings, broker, database, eventually, ids, kafka_relay, outbox_relay, toml,
    unique,
};

/// The process's line that says why this relay cannot run.
async fn said(process: &Process, cursor: &str) -> serde_json::Value {
    let found = || {
        let said = |line: &serde_json::Value| {
            line["cursor"] == cursor && line["message"] == "relay cannot run; it is checked every 5 s"
        };
        lines(process).into_iter().find(said)
    };
    eventually(PATIENCE * 2, || async { found().is_some() }).await;
    found().unwrap()
}

/// One relay is wrong, the other of the same process goes on; after `fix` both run.
async fn wrong_until_fixed(database: &Database, wrong: &str, expected: (&str, &str), fix: &str) {
    let owner = database.connect("postgres").await;
    let text = toml(database, "relay", None, &format!("{wrong}{}", stdout_relay("good", "")));
    let mut process = Process::spawn(&text, &["run"]);
    let (_, error) = halted(&owner, "wrong").await;
    let said = said(&process, "wrong").await;
    let (_, status, _) = outbox_relay(&text, &["status", "-o", "json"]).await;
    let status = json(&status);
    let shown = status["cursors"].as_array().unwrap().iter().find(|cursor| cursor["name"] == "wrong").unwrap();
    assert_eq!((&shown["state"], &shown["last_error"]["code"]), (&"halted".into(), &expected.0.into()));
    let (code, message) = expected;
    assert_eq!(
        (said["code"].as_str(), said["error"].as_str(), said["level"].as_str()),
        (Some(code), Some(message), Some("ERROR"))
    );
    assert_eq!(
        (error["code"].as_str(), error["message"].as_str(), error["class"].as_str()),
        (Some(code), Some(message), Some("fatal"))
    );
    let (_, list, _) = outbox_relay(&text, &["cursor", "list"]).await;
    assert!(list.lines().any(|line| line.starts_with("wrong ") && line.ends_with(" halted")), "{list}");
    owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    eventually(PATIENCE, || async { printed(&process, "good") == ["1"] }).await;
    owner.batch_execute(fix).await.unwrap();
    eventually(PATIENCE * 2, || async { printed(&process, "wrong") == ["1"] }).await;
    fixed(&owner, "wrong").await;
    process.signal(Signal::TERM);
    assert_eq!(process.wait().await, Some(0), "{}", process.log());
}

fn wrong(source: &str) -> String {
    format!("[[relay]]\nname = \"wrong\"\n[relay.source.stream]\n{source}\n[relay.sink.stdout]\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_table_halts_its_relay_only_until_it_is_there() {
    let database = database().await;
    bookings(&database, CLOCK).await;
    let fix = "CREATE TABLE later (LIKE bookings INCLUDING ALL); INSERT INTO later DEFAULT VALUES; \
                GRANT SELECT ON later TO relay";
    let expected = ("table_missing", "table public.later does not exist");
    wrong_until_fixed(&database, &wrong("table = \"public.later\""), expected, fix).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_column_of_the_source_halts_its_relay_only_until_it_is_there() {
    let database = database().await;
    bookings(&database, CLOCK).await;
    let fix = "ALTER TABLE bookings ADD COLUMN stamped timestamptz NOT NULL DEFAULT clock_timestamp()";
    let expected = ("column_missing", "public.bookings has no column stamped");
    wrong_until_fixed(&database, &wrong("table = \"public.bookings\"\ncreated_at = \"stamped\""), expected, fix).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_privilege_halts_its_relay_only_until_it_is_granted() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let make = "CREATE TABLE secret (LIKE bookings INCLUDING ALL); INSERT INTO secret DEFAULT VALUES";
    owner.batch_execute(make).await.unwrap();
    // Rights on columns are not enough.
    owner.batch_execute("GRANT SELECT (id, created_at, payload) ON secret TO relay").await.unwrap();
    let message = "role relay has no SELECT on public.secret, of which columns id, created_at are read; a grant on columns is not enough, because \
                   the relay locks the table against rewrites while it reads";
    let expected = ("privilege_missing", message);
    let fix = "GRANT SELECT ON secret TO relay";
    wrong_until_fixed(&database, &wrong("table = \"public.secret\""), expected, fix).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_topic_and_a_missing_column_of_the_sink_halt_their_relays_only_until_fixed() {
    let (database, broker) = (database().await, broker().await);
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute("INSERT INTO bookings (payload) VALUES ('x')").await.unwrap();
    let (late, there) = (unique("late"), unique("there"));
    broker.create_topic(&there, 1, &[]).await.unwrap();
    let relays = format!(
        "{}{}{}",
        kafka_relay("no_topic", &late, ""),
        kafka_relay("no_column", &there, "").replace("customer", "client"),
        stdout_relay("good", "")
    );
    let servers = broker.bootstrap_servers();
    let mut process = Process::spawn(&toml(&database, "relay", Some(&servers), &relays), &["run"]);
    let (_, error) = halted(&owner, "no_topic").await;
    let message = format!("topic {late} does not exist");
    assert_eq!((error["code"].as_str(), error["message"].as_str()), (Some("topic_missing"), Some(message.as_str())));
    assert_eq!(said(&process, "no_topic").await["error"], message.as_str());
    let (_, error) = halted(&owner, "no_column").await;
    let hint = error["hint"].as_str().unwrap();
    assert!(hint.starts_with("Correct relay.sink.kafka.") && hint.contains("of relay no_column"), "{hint}");
    let message = "relay no_column cannot read public.bookings: ERROR: column t.client does not exist (42703)";
    assert_eq!((error["code"].as_str(), error["message"].as_str()), (Some("column_unreadable"), Some(message)));
    assert_eq!(said(&process, "no_column").await["error"], message);
    eventually(PATIENCE, || async { printed(&process, "good") == ["1"] }).await;

    broker.create_topic(&late, 1, &[]).await.unwrap();
    owner.batch_execute("ALTER TABLE bookings ADD COLUMN client text NOT NULL DEFAULT 'k'").await.unwrap();
    eventually(PATIENCE * 2, || async { ids(&servers, &late).await == ["1"] }).await;
    eventually(PATIENCE * 2, || async { ids(&servers, &there).await == ["1"] }).await;
    fixed(&owner, "no_topic").await;
    fixed(&owner, "no_column").await;
    process.signal(Signal::TERM);
    assert_eq!(process.wait().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_column_of_the_sink_that_vanishes_while_it_runs_halts_the_relay_only_until_it_is_back() {
    let (database, broker) = (database().await, broker().await);
    let owner = bookings(&database, CLOCK).await;
    let topic = unique("vanishes");
    broker.create_topic(&topic, 1, &[]).await.unwrap();
    owner.batch_execute("INSERT INTO bookings (payload) VALUES ('x')").await.unwrap();
    let servers = broker.bootstrap_servers();
    let relays = format!("{}{}", kafka_relay("wrong", &topic, ""), stdout_relay("good", ""));
    let process = Process::spawn(&toml(&database, "relay", Some(&servers), &relays), &["run"]);
    eventually(PATIENCE * 2, || async { ids(&servers, &topic).await == ["1"] }).await;
    owner.batch_execute("ALTER TABLE bookings DROP COLUMN payload").await.unwrap();
    owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    let (_, error) = halted(&owner, "wrong").await;
    assert_eq!((&error["class"], &error["code"]), (&"fatal".into(), &"column_unreadable".into()));
    eventually(PATIENCE, || async { printed(&process, "good") == ["1", "2"] }).await;
    owner.batch_execute("ALTER TABLE bookings ADD COLUMN payload text").await.unwrap();
    eventually(PATIENCE * 2, || async { ids(&servers, &topic).await == ["1", "2"] }).await;
    fixed(&owner, "wrong").await;
}
