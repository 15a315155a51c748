//! Due rows that are larger than `max_row_bytes`: refused without being read, and no other row waits for them.

use super::{PATIENCE, count, database, eventually, reminders, tables};
use crate::support::outside::{halted, json};
use crate::support::receiver::Receiver;
use crate::support::{Process, outbox_relay, toml};

/// Three rows, of which the second has so many bytes.
fn rows(bytes: u32) -> String {
    format!(
        "INSERT INTO todos SELECT 'w', n::text, repeat('t', CASE n WHEN 2 THEN {bytes} ELSE 1 END), now() \
         FROM generate_series(1, 3) AS n"
    )
}

// Guarantee: failures.large-pending
#[tokio::test(flavor = "multi_thread")]
async fn large_due_row_halts_without_being_read() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    owner.batch_execute(&rows(100_000_000)).await.unwrap();
    let process = Process::spawn(&toml(&database, "relay", None, &reminders(&receiver, "")), &["run"]);
    let (id, error) = halted(&owner, "reminders").await;
    assert_eq!(
        (id.as_deref(), &error["class"], &error["code"]),
        (Some("w/2"), &"poison".into(), &"row_too_large".into())
    );
    assert_eq!(error["message"], "row w/2 takes 100000003 bytes, and max_row_bytes is 16777216");
    let peak = crate::odd_rows::peak(&process);
    assert!(peak < 150, "the relay had {peak} MiB");
}

// Guarantee: failures.large-pending
#[tokio::test(flavor = "multi_thread")]
async fn large_due_row_becomes_dead_letter_and_is_redriven() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    owner.batch_execute(&rows(1_000_000)).await.unwrap();
    let text = |limit: &str| {
        let relay = reminders(&receiver, "on_poison = \"dead_letter\"");
        toml(&database, "relay", None, &format!("{relay}[relay.turn]\nmax_row_bytes = \"{limit}\"\n"))
    };
    let first = Process::spawn(&text("64KiB"), &["run"]);
    let marked = "SELECT count(*) FROM todos WHERE \"delayNotificationSent\"";
    eventually(PATIENCE, async || count(&owner, marked).await == 2).await;
    let letters = "SELECT count(*) FROM outbox.dead_letter WHERE state = 'dead' AND message_id = 'w/2' \
                   AND error ->> 'code' = 'row_too_large' AND payload IS NULL AND field_values = '{}'";
    eventually(PATIENCE, async || count(&owner, letters).await == 1).await;
    drop(first);
    let _second = Process::spawn(&text("2MiB"), &["run"]);
    let (_, out, _) = outbox_relay(&text("2MiB"), &["dead-letter", "list", "-o", "json"]).await;
    let id = json(&out)["dead_letters"][0]["id"].to_string();
    let (code, _, log) = outbox_relay(&text("2MiB"), &["dead-letter", "redrive", &id, "--yes"]).await;
    assert_eq!(code, Some(0), "{log}");
    eventually(PATIENCE, async || count(&owner, marked).await == 3).await;
}

/// A control character is six bytes of JSON: the second row is below the limit as text.
// Guarantee: failures.large-pending
#[tokio::test(flavor = "multi_thread")]
async fn due_row_above_limit_as_json_becomes_dead_letter() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    owner.batch_execute(&rows(900_000).replace("repeat('t'", "repeat(chr(1)")).await.unwrap();
    let relay = reminders(&receiver, "on_poison = \"dead_letter\"");
    let text = toml(&database, "relay", None, &format!("{relay}[relay.turn]\nmax_row_bytes = \"1MiB\"\n"));
    let _process = Process::spawn(&text, &["run"]);
    let marked = "SELECT count(*) FROM todos WHERE \"delayNotificationSent\"";
    eventually(PATIENCE, async || count(&owner, marked).await == 2).await;
    let letters = "SELECT count(*) FROM outbox.dead_letter WHERE state = 'dead' AND message_id = 'w/2' \
                   AND error ->> 'code' = 'row_too_large' AND error ->> 'message' LIKE 'row w/2 takes 5400___ bytes, %' \
                   AND payload IS NULL AND field_values = '{}'";
    eventually(PATIENCE, async || count(&owner, letters).await == 1).await;
}

// Guarantee: failures.large-pending
#[tokio::test(flavor = "multi_thread")]
async fn claim_reads_no_more_rows_than_have_room() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    let fill = "INSERT INTO todos SELECT 'w', n::text, repeat('t', 1000000), now() FROM generate_series(1, 200) AS n";
    owner.batch_execute(fill).await.unwrap();
    let process = Process::spawn(&toml(&database, "relay", None, &reminders(&receiver, "")), &["run"]);
    let marked = "SELECT count(*) FROM todos WHERE \"delayNotificationSent\"";
    eventually(PATIENCE * 4, async || count(&owner, marked).await == 200).await;
    let peak = crate::odd_rows::peak(&process);
    println!("the relay had at most {peak} MiB");
    assert!(peak < 150, "the relay had {peak} MiB");
}

/// Each row takes half a second to be read: ten take longer than a statement may.
// Guarantee: failures.large-pending
#[tokio::test(flavor = "multi_thread")]
async fn rows_that_take_long_to_read_are_claimed_a_few_at_a_time() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = database.connect("postgres").await;
    let tables = "CREATE TABLE slow_rows (id bigint PRIMARY KEY, due timestamptz NOT NULL, name text); CREATE INDEX ON slow_rows (due, id); \
         CREATE FUNCTION slowly(text) RETURNS text LANGUAGE plpgsql STABLE COST 100000 AS \
         $$ BEGIN PERFORM pg_sleep(0.17); RETURN $1; END $$; \
         CREATE VIEW slow AS SELECT id, due, slowly(name) AS name FROM slow_rows; GRANT SELECT ON slow TO relay; \
         INSERT INTO slow_rows SELECT n, now(), 'n' FROM generate_series(1, 10) AS n";
    owner.batch_execute(tables).await.unwrap();
    let relay = format!(
        "[[relay]]\nname = \"slow\"\n[relay.source.pending]\ntable = \"public.slow\"\nkey = [\"id\"]\ndue = \"due\"\n\
         [relay.sink.http]\nurl = \"{}/x\"\nbody = \"{{{{ name }}}}\"\n",
        receiver.url()
    );
    let _process = Process::spawn(&toml(&database, "relay", None, &relay), &["run"]);
    eventually(PATIENCE * 3, async || count(&owner, "SELECT count(*) FROM outbox.sent").await == 10).await;
}

/// Without the index that `check` asks for, JSON was made of all rows that are due before the first of them was chosen.
// Guarantee: failures.large-pending
#[tokio::test(flavor = "multi_thread")]
async fn without_index_claim_reads_only_rows_that_it_takes() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = database.connect("postgres").await;
    let tables = "CREATE TABLE slow (id bigint PRIMARY KEY, due timestamptz NOT NULL, name text); GRANT SELECT ON slow TO relay; \
         INSERT INTO slow SELECT n, now(), repeat(chr(1), 250000) FROM generate_series(1, 2000) AS n";
    owner.batch_execute(tables).await.unwrap();
    let relay = format!(
        "[[relay]]\nname = \"slow\"\n[relay.source.pending]\ntable = \"public.slow\"\nkey = [\"id\"]\ndue = \"due\"\n\
         [relay.sink.http]\nurl = \"{}/x\"\n",
        receiver.url()
    );
    let _process = Process::spawn(&toml(&database, "relay", None, &relay), &["run"]);
    eventually(PATIENCE * 3, async || count(&owner, "SELECT count(*) FROM outbox.sent").await >= 10).await;
    let requests = receiver.requests();
    assert!(requests[0].body.ends_with("\\u0001\"}"), "whole rows");
}
