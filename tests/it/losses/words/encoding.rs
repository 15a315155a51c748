//! Rows with bytes that are no UTF-8, in databases of other encodings: they are poison, and no other row waits for them.

use std::sync::atomic::{AtomicU32, Ordering};

use tokio_postgres::Client;

use crate::support::outside::{halted, is_halted, printed, stdout_relay};
use crate::support::receiver::Receiver;
use crate::support::servers::postgres;
use crate::support::{CLOCK, Database, PATIENCE, Process, Replica, bookings, config, eventually, outbox_relay, toml};

/// Encodings, and a string of each that has no UTF-8 form.
const ENCODINGS: [(&str, &str); 2] =
    [("SQL_ASCII", r"convert_from('\x41ff', 'SQL_ASCII')"), ("WIN1252", r"convert_from('\x4181', 'WIN1252')")];

/// A database of this encoding, with the schema of the relay.
async fn encoded(encoding: &str) -> Database {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let postgres = postgres().await;
    let name = format!("encoded_{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let server = postgres.connect("postgres", "postgres").await.unwrap();
    let create = format!("CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}' LOCALE 'C'");
    server.batch_execute(&create).await.unwrap();
    let database = Database { name, postgres };
    let mut owner = database.connect("postgres").await;
    outbox_relay::migrate::up(&mut owner).await.unwrap();
    outbox_relay::migrate::grant(&owner, &outbox_relay::migrate::relay_grants("relay", &[])).await.unwrap();
    database
}

/// Inserts five rows of which the third cannot be read as UTF-8.
async fn insert(owner: &Client, bad: &str) {
    for payload in ["'1'", "'2'", bad, "'4'", "'5'"] {
        owner.batch_execute(&format!("INSERT INTO bookings (payload) VALUES ({payload})")).await.unwrap();
    }
}

async fn ends(code: i32, text: &str, args: &[&str]) -> String {
    let (found, out, log) = outbox_relay(text, args).await;
    assert_eq!(found, Some(code), "{args:?}\n{out}\n{log}");
    out
}

// Guarantee: failures.encoding
#[tokio::test(flavor = "multi_thread")]
async fn row_that_is_not_utf8_halts_and_can_be_skipped() {
    for (encoding, bad) in ENCODINGS {
        let database = encoded(encoding).await;
        let owner = bookings(&database, CLOCK).await;
        insert(&owner, bad).await;
        let text = toml(&database, "relay", None, &stdout_relay("s", ""));
        let process = Process::spawn(&text, &["run"]);
        let (id, error) = halted(&owner, "s").await;
        assert_eq!(
            (id.as_deref(), &error["class"], &error["code"]),
            (Some("3"), &"poison".into(), &"value_not_utf8".into())
        );
        assert_eq!(printed(&process, "s"), ["1", "2"], "{encoding}: the rows before it are delivered");
        let why = ends(3, &text, &["cursor", "why", "s"]).await;
        assert!(why.contains("halted at message 3") && why.contains("outbox-relay cursor skip s"), "{why}");
        // Still so after a resume, and nothing after it is delivered.
        ends(0, &text, &["cursor", "resume", "s"]).await;
        eventually(PATIENCE, || is_halted(&owner, "s")).await;
        assert_eq!(printed(&process, "s"), ["1", "2"]);
        ends(0, &text, &["cursor", "skip", "s", "--yes"]).await;
        eventually(PATIENCE, || async { printed(&process, "s") == ["1", "2", "4", "5"] }).await;
    }
}

// Guarantee: failures.encoding
#[tokio::test(flavor = "multi_thread")]
async fn row_that_is_not_utf8_becomes_dead_letter() {
    for (encoding, bad) in ENCODINGS {
        for guarantee in ["", "guarantee = \"at_most_once\"\n"] {
            let (database, receiver) = (encoded(encoding).await, Receiver::start());
            let owner = bookings(&database, CLOCK).await;
            insert(&owner, bad).await;
            let relays = receiver.relay("r", &format!("{guarantee}on_poison = \"dead_letter\""));
            let replica = Replica::start(&config(&database, "relay", None, &relays), "r1");
            eventually(PATIENCE * 2, || async { receiver.accepted("r") == ["1", "2", "4", "5"] }).await;
            let letter = owner
                .query_one("SELECT message_id, error ->> 'code', key, payload, id::text FROM outbox.dead_letter", &[])
                .await
                .unwrap();
            assert_eq!((letter.get(0), letter.get(1)), ("3", "value_not_utf8"), "{encoding}, {guarantee}");
            assert_eq!((letter.get(2), letter.get(3)), (None::<&str>, None::<&[u8]>));
            // Sent again it is refused while the row is as it is; once it is corrected it goes out.
            let text = toml(&database, "relay", None, &relays);
            let state = async || {
                let sql = "SELECT state || ' ' || attempts FROM outbox.dead_letter";
                owner.query_one(sql, &[]).await.unwrap().get::<_, String>(0)
            };
            ends(0, &text, &["dead-letter", "redrive", letter.get(4), "--yes"]).await;
            eventually(PATIENCE, || async { state().await == "dead 2" }).await;
            owner.batch_execute("UPDATE bookings SET payload = 'corrected' WHERE id = 3").await.unwrap();
            ends(0, &text, &["dead-letter", "redrive", letter.get(4), "--yes"]).await;
            eventually(PATIENCE, || async { state().await.starts_with("redriven") }).await;
            // Under at_most_once the letter is marked before its row is sent.
            eventually(PATIENCE, || async { receiver.accepted("r") == ["1", "2", "4", "5", "3"] }).await;
            replica.stop().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_dead_letter_row_is_never_sent_as_nulls() {
    let (encoding, bad) = ENCODINGS[0];
    let (database, receiver) = (encoded(encoding).await, Receiver::start());
    let owner = bookings(&database, CLOCK).await;
    insert(&owner, bad).await;
    let relays = receiver.relay("r", "on_poison = \"dead_letter\"");
    let replica = Replica::start(&config(&database, "relay", None, &relays), "r1");
    eventually(PATIENCE * 2, || async { receiver.accepted("r") == ["1", "2", "4", "5"] }).await;
    owner
        .batch_execute("DELETE FROM bookings WHERE id = 3; UPDATE outbox.dead_letter SET state = 'redriving'")
        .await
        .unwrap();
    let code = "SELECT error ->> 'code' FROM outbox.dead_letter WHERE state = 'dead'";
    eventually(PATIENCE, || async {
        owner.query_opt(code, &[]).await.unwrap().is_some_and(|row| row.get::<_, &str>(0) == "row_gone")
    })
    .await;
    assert_eq!(receiver.accepted("r"), ["1", "2", "4", "5"]);
    replica.stop().await;
}

// Guarantee: failures.encoding
#[tokio::test(flavor = "multi_thread")]
async fn id_that_is_not_utf8_halts_with_its_bytes() {
    for (encoding, bad) in ENCODINGS {
        let database = encoded(encoding).await;
        let owner = database.connect("postgres").await;
        let create = format!("CREATE TABLE bookings (id text PRIMARY KEY, created_at {CLOCK}, payload text)");
        let rights = "CREATE INDEX ON bookings (created_at, id); GRANT SELECT ON bookings TO relay";
        owner.batch_execute(&format!("{create}; {rights}")).await.unwrap();
        // It is the newest row as well: neither polls nor the rows before it stop at it.
        for id in ["'1'", bad] {
            owner.batch_execute(&format!("INSERT INTO bookings (id) VALUES ({id})")).await.unwrap();
        }
        let text = toml(&database, "relay", None, &stdout_relay("s", "on_poison = \"dead_letter\""));
        let process = Process::spawn(&text, &["run"]);
        let (id, error) = halted(&owner, "s").await;
        assert_eq!((id, &error["class"], &error["code"]), (None, &"fatal".into(), &"id_not_utf8".into()));
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("41ff") || message.contains("4181"), "{message}");
        assert_eq!(printed(&process, "s"), ["1"], "{encoding}: the rows before it are delivered");
        owner
            .batch_execute("UPDATE bookings SET id = '2' WHERE id <> '1'; INSERT INTO bookings (id) VALUES ('3')")
            .await
            .unwrap();
        ends(0, &text, &["cursor", "resume", "s"]).await;
        eventually(PATIENCE, || async { printed(&process, "s") == ["1", "2", "3"] }).await;
    }
}

/// One such value stopped every claim, and an answer that the encoding does not have could not be recorded.
// Guarantee: failures.encoding
#[tokio::test(flavor = "multi_thread")]
async fn work_that_is_claimed_needs_utf8_and_says_so() {
    let (database, receiver) = (encoded("LATIN1").await, Receiver::start());
    let owner = database.connect("postgres").await;
    let create = "CREATE TABLE job (id text PRIMARY KEY, due timestamptz, payload text); CREATE INDEX ON job (due, id); \
                  GRANT SELECT ON job TO relay; INSERT INTO job VALUES ('1', now(), 'p')";
    owner.batch_execute(create).await.unwrap();
    for source in
        ["pending]\ntable = \"public.job\"\nkey = [\"id\"]\ndue = \"due\"", "requests]\ntemplates = [\"job\"]"]
    {
        let relay = format!(
            "[[relay]]\nname = \"job\"\n[relay.source.{source}\n[relay.sink.http]\nurl = \"{}/rows\"\nbody = \"text\"\n",
            receiver.url()
        );
        let text = toml(&database, "relay", None, &relay);
        for (code, args) in [(3, &["check"][..]), (1, &["run", "--once", "--timeout", "20s"])] {
            let (found, out, log) = outbox_relay(&text, args).await;
            let said = format!("{out}{log}");
            assert_eq!(found, Some(code), "{args:?}: {said}");
            assert!(said.contains("encoding_not_utf8") && said.contains("encoding is LATIN1"), "{args:?}: {said}");
        }
    }
    assert_eq!(receiver.requests().len(), 0);
}
