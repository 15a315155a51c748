//! A row that is larger than `max_row_bytes` is never read: it is put aside or halts its relay, and nothing else stops.

use tokio_postgres::Client;

use super::{fill, holds, peak, replica, topic};
use crate::support::outside::{halted, standing};
use crate::support::receiver::Receiver;
use crate::support::{
    CLOCK, Database, PATIENCE, bookings, broker, database, eventually, ids, kafka_relay, outbox_relay, toml,
};

/// The second of three rows has 100 MB.
const ATTACK: &str = "CASE n WHEN 2 THEN 100000000 ELSE 64 END";
const LENGTH: &str = "100000001";
/// The second of three rows has a mebibyte, between these limits.
const MEBIBYTE: &str = "CASE n WHEN 2 THEN 1024 * 1024 ELSE 64 END";
const LOW: &str = "max_row_bytes = \"64KiB\"\n";
const RAISED: &str = "max_row_bytes = \"2MiB\"\n";
const TURN: &str = "[relay.turn]\ndeadline = \"30s\"\n";
/// MiB: an idle process has about 45.
const BOUND: u64 = 150;

/// A relay to Kafka of the whole payload, and one to a receiver that reads only the ids.
async fn relays(topic: &str, more: &str, turn: &str, receiver: &Receiver) -> String {
    let ids = receiver.relay("ids", "").replace("{{ payload }}", "{{ id }}");
    format!("{}{TURN}{turn}{ids}", kafka_relay("large", topic, more))
}

/// Message id, code, message, whether there is no payload, and state of each dead letter.
async fn letters(owner: &Client) -> Vec<(String, String, String, bool, String)> {
    let sql = "SELECT message_id, error ->> 'code', error ->> 'message', payload IS NULL AND field_values = '{}', \
               state || ' ' || attempts FROM outbox.dead_letter ORDER BY id";
    let rows = owner.query(sql, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1), row.get(2), row.get(3), row.get(4))).collect()
}

async fn redrive(database: &Database, relays: &str) {
    let text = toml(database, "relay", Some(&broker().await.bootstrap_servers()), relays);
    let (code, _, log) = outbox_relay(&text, &["dead-letter", "redrive", "--cursor", "large", "--yes"]).await;
    assert_eq!(code, Some(0), "{log}");
}

// Guarantee: failures.max-row-bytes
#[tokio::test(flavor = "multi_thread")]
async fn row_above_limit_becomes_dead_letter_without_being_read() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = bookings(&database, CLOCK).await;
    fill(&owner, ATTACK, 3).await;
    let topic = topic("above", &[]).await;
    let servers = broker().await.bootstrap_servers();
    let text = relays(&topic, "on_poison = \"dead_letter\"", "", &receiver).await;
    let first = replica(&database, &text).await;
    holds(&servers, &topic, 2).await;
    assert_eq!(ids(&servers, &topic).await, ["1", "3"]);
    eventually(PATIENCE, || async { receiver.accepted("ids") == ["1", "2", "3"] }).await;
    let [(id, code, message, empty, _)] = &letters(&owner).await[..] else { panic!("one letter") };
    assert_eq!((id.as_str(), code.as_str(), *empty), ("2", "row_too_large", true));
    assert_eq!(message, &format!("row 2 takes {LENGTH} bytes, and max_row_bytes is 16777216"));

    let peak = peak(&first);
    assert!(peak < BOUND, "the relay had {peak} MiB");
}

/// The length of each row could be looked at before they are sorted, and the statement fail at one that is far away.
// Guarantee: failures.max-row-bytes
#[tokio::test(flavor = "multi_thread")]
async fn without_index_rows_before_one_above_limit_are_sent() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute("DROP INDEX bookings_created_at_id_idx").await.unwrap();
    fill(&owner, "CASE n WHEN 50 THEN 1024 * 1024 ELSE 64 END", 100).await;
    let topic = topic("unindexed", &[]).await;
    let text = relays(&topic, "on_poison = \"dead_letter\"", LOW, &receiver).await;
    let _replica = replica(&database, &text).await;
    let servers = broker().await.bootstrap_servers();
    holds(&servers, &topic, 99).await;
    let all = (1..=100).filter(|id| *id != 50).map(|id| id.to_string());
    assert_eq!(ids(&servers, &topic).await, all.collect::<Vec<_>>());
    let [(id, code, ..)] = &letters(&owner).await[..] else { panic!("one letter") };
    assert_eq!((id.as_str(), code.as_str()), ("50", "row_too_large"));
}

/// A control character is six bytes of JSON. The second row is below the limit as text, and six times as long as JSON, which is made by the
/// relay or, beside a column of another type, by PostgreSQL.
// Guarantee: failures.max-row-bytes
#[tokio::test(flavor = "multi_thread")]
async fn row_above_limit_as_json_is_not_read() {
    for column in ["", "ALTER TABLE bookings ADD COLUMN numbers integer[]"] {
        let database = database().await;
        let owner = bookings(&database, CLOCK).await;
        owner.batch_execute(column).await.unwrap();
        let insert = "INSERT INTO bookings (payload) SELECT repeat(chr(1), CASE n WHEN 2 THEN 16700000 ELSE 64 END) \
                      FROM generate_series(1, 3) AS n";
        owner.batch_execute(insert).await.unwrap();
        let topic = topic("json", &[]).await;
        let servers = broker().await.bootstrap_servers();
        let relay = kafka_relay("large", &topic, "on_poison = \"dead_letter\"");
        let replica = replica(&database, &(relay.replace("{ column = \"payload\" }", "{ row = true }") + TURN)).await;
        holds(&servers, &topic, 2).await;
        assert_eq!(ids(&servers, &topic).await, ["1", "3"]);
        let [(id, code, message, empty, _)] = &letters(&owner).await[..] else { panic!("one letter") };
        assert_eq!((id.as_str(), code.as_str(), *empty), ("2", "row_too_large", true));
        assert!(message.starts_with("row 2 takes 100200"), "{message}");
        let peak = peak(&replica);
        println!("the relay had at most {peak} MiB");
        assert!(peak < BOUND, "the relay had {peak} MiB");
    }
}

// Guarantee: failures.max-row-bytes
#[tokio::test(flavor = "multi_thread")]
async fn redrive_sends_large_row_once_limit_is_raised() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = bookings(&database, CLOCK).await;
    fill(&owner, MEBIBYTE, 3).await;
    let topic = topic("again", &[("max.message.bytes", "2000000")]).await;
    let servers = broker().await.bootstrap_servers();
    let text = async |limit| relays(&topic, "on_poison = \"dead_letter\"", limit, &receiver).await;
    let first = replica(&database, &text(LOW).await).await;
    holds(&servers, &topic, 2).await;
    redrive(&database, &text(LOW).await).await;
    eventually(PATIENCE, || async { letters(&owner).await[0].4 == "dead 2" }).await;
    assert_eq!(letters(&owner).await[0].1, "row_too_large", "sent again it is refused while the limit is as it is");
    drop(first);
    let _second = replica(&database, &text(RAISED).await).await;
    redrive(&database, &text(RAISED).await).await;
    holds(&servers, &topic, 3).await;
    assert_eq!(ids(&servers, &topic).await, ["1", "3", "2"]);
}

// Guarantee: failures.max-row-bytes
#[tokio::test(flavor = "multi_thread")]
async fn row_above_limit_halts_without_being_read() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = bookings(&database, CLOCK).await;
    fill(&owner, ATTACK, 3).await;
    let topic = topic("halting", &[]).await;
    let servers = broker().await.bootstrap_servers();
    let first = replica(&database, &relays(&topic, "", "", &receiver).await).await;
    let (id, error) = halted(&owner, "large").await;
    assert_eq!(
        (id.as_deref(), error["code"].as_str(), error["class"].as_str()),
        (Some("2"), Some("row_too_large"), Some("poison"))
    );
    assert_eq!(error["message"], format!("row 2 takes {LENGTH} bytes, and max_row_bytes is 16777216"));
    assert!(error["hint"].as_str().unwrap().contains("[relay.turn] max_row_bytes = \"96MiB\""), "{error}");
    eventually(PATIENCE, || async { receiver.accepted("ids") == ["1", "2", "3"] }).await;
    assert_eq!(ids(&servers, &topic).await, ["1"]);
    let peak = peak(&first);
    assert!(peak < BOUND, "the relay had {peak} MiB");
}

// Guarantee: failures.max-row-bytes
#[tokio::test(flavor = "multi_thread")]
async fn halt_at_large_row_ends_once_limit_is_raised() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = bookings(&database, CLOCK).await;
    fill(&owner, MEBIBYTE, 3).await;
    let topic = topic("raising", &[("max.message.bytes", "2000000")]).await;
    let servers = broker().await.bootstrap_servers();
    let first = replica(&database, &relays(&topic, "", LOW, &receiver).await).await;
    let (id, error) = halted(&owner, "large").await;
    assert_eq!((id.as_deref(), error["code"].as_str()), (Some("2"), Some("row_too_large")), "{error}");
    drop(first);
    let _second = replica(&database, &relays(&topic, "", RAISED, &receiver).await).await;
    holds(&servers, &topic, 3).await;
    assert_eq!(ids(&servers, &topic).await, ["1", "2", "3"]);
}

// Guarantee: failures.max-row-bytes
#[tokio::test(flavor = "multi_thread")]
async fn numbers_that_print_large_are_measured_as_printed() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = bookings(&database, CLOCK).await;
    // 131 MB and 1.2 GB of text, of which the second is more than PostgreSQL makes; the table holds a few kilobytes of each.
    let list = |numbers: i32| format!("('[' || repeat('1e131071,', {numbers}) || '1]')::jsonb");
    owner
        .batch_execute(&format!(
            "ALTER TABLE bookings ADD COLUMN document jsonb; INSERT INTO bookings (payload, document) VALUES ('a', '1'), \
             ('b', {}), ('c', {}), ('d', '[2]')",
            list(1_000),
            list(9_000)
        ))
        .await
        .unwrap();
    let relay = receiver.relay("row", "on_poison = \"dead_letter\"").replace("\"{{ payload }}\"", "\"row\"");
    let replica = replica(&database, &(relay + TURN)).await;
    eventually(PATIENCE * 6, || async { receiver.accepted("row") == ["1", "4"] }).await;
    let letters = letters(&owner).await;
    let found: Vec<_> = letters.iter().map(|(id, code, ..)| (id.as_str(), code.as_str())).collect();
    assert_eq!(found, [("2", "row_too_large"), ("3", "row_too_large")]);
    assert_eq!(letters[0].2, "row 2 takes 131074005 bytes, and max_row_bytes is 16777216");
    assert!(letters[1].2.starts_with("row 3 takes at least "), "{}", letters[1].2);
    assert!(!standing(&owner, "row").await.is_some_and(|(_, halted, ..)| halted));
    let peak = peak(&replica);
    assert!(peak < BOUND, "the relay had {peak} MiB");
}

#[tokio::test(flavor = "multi_thread")]
async fn row_is_retried_while_server_is_out_of_memory() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = bookings(&database, CLOCK).await;
    // Making the row's JSON fails as it does on a server without memory.
    let short = "CREATE TABLE short (of_memory boolean); INSERT INTO short VALUES (true); GRANT SELECT ON short TO relay; \
                 CREATE TYPE mood AS ENUM ('glad'); \
                 CREATE FUNCTION said(mood) RETURNS json LANGUAGE plpgsql AS $$ BEGIN \
                 IF (SELECT of_memory FROM public.short) THEN RAISE EXCEPTION 'out of memory' USING ERRCODE = '53200'; END IF; \
                 RETURN '\"glad\"'; END $$; CREATE CAST (mood AS json) WITH FUNCTION said (mood); \
                 ALTER TABLE bookings ADD COLUMN mood mood; INSERT INTO bookings (mood) VALUES ('glad')";
    owner.batch_execute(short).await.unwrap();
    let relay = receiver.relay("row", "on_poison = \"dead_letter\"").replace("\"{{ payload }}\"", "\"row\"");
    let _replica = replica(&database, &(relay + TURN)).await;
    let tried = "SELECT EXISTS (SELECT FROM outbox.cursor_status WHERE last_error ->> 'code' = 'postgres_53200') \
                 OR EXISTS (SELECT FROM outbox.dead_letter)";
    eventually(PATIENCE * 2, async || owner.query_one(tried, &[]).await.unwrap().get(0)).await;
    assert_eq!(letters(&owner).await, [], "memory comes back");
    owner.batch_execute("UPDATE short SET of_memory = false").await.unwrap();
    eventually(PATIENCE * 2, || async { receiver.accepted("row") == ["1"] }).await;
}
