//! What cannot be read by shards, and rows without a key.

use serde_json::Value;

use crate::support::outside::{fixed, halted, printed, stdout_relay};
use crate::support::{PATIENCE, Process, database, eventually, outbox_relay, toml};

fn relay(key: &str) -> String {
    format!(
        "[[relay]]\nname = \"r\"\nshards = 2\nshard_key = \"{key}\"\n[relay.source.stream]\ntable = \"public.bookings\"\n\
         [relay.sink.stdout]\n"
    )
}

// Guarantee: shards.unstable-keys
#[tokio::test]
async fn keys_whose_text_no_index_can_hold_are_refused_with_what_fixes_it() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    owner
        .batch_execute(
            "CREATE TYPE mood AS ENUM ('good'); CREATE DOMAIN code AS text; \
             CREATE TABLE bookings (id bigint PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), \
             at timestamptz, mood mood, code code, price numeric, data jsonb, raw bytea); \
             CREATE INDEX ON bookings (created_at, id); GRANT SELECT ON bookings TO relay",
        )
        .await
        .unwrap();
    let cases = [("missing", "shard_key_missing"), ("at", "shard_key_type"), ("mood", "shard_key_type")];
    let more = ["code", "price", "data", "raw"].map(|key| (key, "shard_key_type"));
    for (key, wanted) in cases.into_iter().chain(more) {
        let (code, out, log) =
            outbox_relay(&toml(&database, "relay", None, &relay(key)), &["check", "-o", "json"]).await;
        assert_eq!(code, Some(3), "{key}: {log}");
        let report: Value = serde_json::from_str(&out).unwrap();
        let errors = report["findings"].as_array().unwrap().iter().filter(|finding| finding["level"] == "error");
        let errors: Vec<_> =
            errors.map(|finding| (finding["code"].as_str().unwrap(), !finding["fix_setting"].is_null())).collect();
        assert_eq!(errors, [(wanted, true)], "{key}");
        let (code, out, log) =
            outbox_relay(&toml(&database, "postgres", None, &relay(key)), &["migrate", "up", "--indexes"]).await;
        assert!(code == Some(1) && log.contains(key), "{key}: {out} {log}");
    }
}

// Guarantee: shards.one-shard-per-row
#[tokio::test(flavor = "multi_thread")]
async fn every_row_belongs_to_one_shard_one_without_a_key_to_the_first() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    owner
        .batch_execute(
            "CREATE TABLE bookings (id bigint PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), key text); \
             CREATE INDEX ON bookings (created_at, id); GRANT SELECT ON bookings TO relay; \
             INSERT INTO bookings (id, key) SELECT n, CASE WHEN n % 3 > 0 THEN 'ä' || n END FROM generate_series(1, 300) n",
        )
        .await
        .unwrap();
    let (code, _, log) =
        outbox_relay(&toml(&database, "postgres", None, &relay("key")), &["migrate", "up", "--indexes"]).await;
    assert_eq!(code, Some(0), "{log}");
    let process = Process::spawn(&toml(&database, "relay", None, &relay("key")), &["run"]);
    let ids = || -> Vec<i64> {
        let lines = process.out();
        lines
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().parse().unwrap())
            .collect()
    };
    eventually(PATIENCE * 2, async || ids().len() == 300).await;
    let mut sorted = ids();
    let keyless: Vec<i64> = sorted.iter().copied().filter(|id| id % 3 == 0).collect();
    assert!(keyless.is_sorted(), "rows without a key stay in order among themselves: {keyless:?}");
    sorted.sort_unstable();
    assert_eq!(sorted, (1..=300).collect::<Vec<_>>());
    // A row is printed before the cursor moves behind it.
    let moved = "SELECT position_id IS NOT NULL FROM outbox.cursor WHERE name = 'r#0'";
    eventually(PATIENCE, async || owner.query_one(moved, &[]).await.unwrap().get(0)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shard_key_that_vanishes_while_it_runs_halts_its_relay_alone_until_it_is_back() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    owner
        .batch_execute(
            "CREATE TABLE bookings (id bigint PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), key text); \
             CREATE INDEX ON bookings (created_at, id); GRANT SELECT ON bookings TO relay; INSERT INTO bookings VALUES (1)",
        )
        .await
        .unwrap();
    let index = async || {
        let owners = toml(&database, "postgres", None, &relay("key"));
        let (code, _, log) = outbox_relay(&owners, &["migrate", "up", "--indexes"]).await;
        assert_eq!(code, Some(0), "{log}");
    };
    index().await;
    // Both read the one table by the same looks.
    let relays = format!("{}{}", relay("key"), stdout_relay("plain", ""));
    let process = Process::spawn(&toml(&database, "relay", None, &relays), &["run"]);
    for name in ["r", "plain"] {
        eventually(PATIENCE * 2, async || printed(&process, name) == ["1"]).await;
    }
    owner.batch_execute("ALTER TABLE bookings DROP COLUMN key").await.unwrap();
    owner.batch_execute("INSERT INTO bookings VALUES (2)").await.unwrap();
    for cursor in ["r#0", "r#1"] {
        let (_, error) = halted(&owner, cursor).await;
        assert_eq!((&error["class"], &error["code"]), (&"fatal".into(), &"shard_key_missing".into()), "{error}");
    }
    eventually(PATIENCE, async || printed(&process, "plain") == ["1", "2"]).await;
    owner.batch_execute("ALTER TABLE bookings ADD COLUMN key text").await.unwrap();
    index().await;
    eventually(PATIENCE * 2, async || printed(&process, "r") == ["1", "2"]).await;
    fixed(&owner, "r#0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shard_key_whose_name_another_column_takes_while_it_runs_halts_its_relay_until_it_is_back() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    owner
        .batch_execute(
            "CREATE TABLE bookings (id bigint PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), key text, \
             other text); \
             CREATE INDEX ON bookings (created_at, id); GRANT SELECT ON bookings TO relay; INSERT INTO bookings VALUES (1)",
        )
        .await
        .unwrap();
    let owners = toml(&database, "postgres", None, &relay("key"));
    let (code, _, log) = outbox_relay(&owners, &["migrate", "up", "--indexes"]).await;
    assert_eq!(code, Some(0), "{log}");
    let process = Process::spawn(&toml(&database, "relay", None, &relay("key")), &["run"]);
    eventually(PATIENCE * 2, async || printed(&process, "r") == ["1"]).await;
    let swap = "ALTER TABLE bookings RENAME key TO old; ALTER TABLE bookings RENAME other TO key";
    owner.batch_execute(swap).await.unwrap();
    for cursor in ["r#0", "r#1"] {
        let (_, error) = halted(&owner, cursor).await;
        assert_eq!(error["code"], "shard_index_missing", "{error}");
    }
    let back = "ALTER TABLE bookings RENAME key TO other; ALTER TABLE bookings RENAME old TO key; \
                INSERT INTO bookings VALUES (2)";
    owner.batch_execute(back).await.unwrap();
    eventually(PATIENCE * 2, async || printed(&process, "r") == ["1", "2"]).await;
    fixed(&owner, "r#0").await;
}
