//! Keys that the database takes for equal, and shard keys that change.

use outbox_relay::source::shard::Shard;
use serde_json::Value;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::support::outside::{finding, halted, json, stdout_relay};
use crate::support::reader::Reader;
use crate::support::{CLOCK, Database, Process, bookings, database, outbox_relay, toml};

/// Creates the collation `loose`, which takes `a` and `A` for equal. A server that was built without ICU has none: there
/// the catalog alone says that one of the C library is not deterministic, and this returns false.
async fn loose(owner: &Client) -> bool {
    let icu = "CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)";
    let Err(error) = owner.batch_execute(icu).await else { return true };
    assert_eq!(error.as_db_error().unwrap().message(), "ICU is not supported in this build");
    let libc = "CREATE COLLATION loose (provider = libc, locale = 'C.UTF-8'); \
                UPDATE pg_collation SET collisdeterministic = false WHERE collname = 'loose'";
    owner.batch_execute(libc).await.unwrap();
    false
}

/// The finding of this code, of a configuration of these relays.
async fn found(database: &Database, relays: &str, code: &str) -> Option<Value> {
    let (_, out, _) = outbox_relay(&toml(database, "relay", None, relays), &["check", "-o", "json"]).await;
    finding(&json(&out), code).cloned()
}

// Guarantee: horizon.collation
#[tokio::test(flavor = "multi_thread")]
async fn unique_index_of_another_collation_is_refused() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    let equal = loose(&owner).await;
    owner
        .batch_execute(&format!(
            "CREATE TABLE bookings (id text COLLATE loose NOT NULL, created_at {CLOCK}); \
             CREATE UNIQUE INDEX by_id ON bookings (created_at, id); GRANT SELECT ON bookings TO relay"
        ))
        .await
        .unwrap();
    let relay = stdout_relay("r", "");
    assert_eq!(found(&database, &relay, "not_unique").await, None, "the index compares as the column does");
    let reader = Reader::new(&database, "relay").await.rows(1);
    owner
        .batch_execute(
            "DROP INDEX by_id; CREATE UNIQUE INDEX by_id ON bookings (created_at, id COLLATE \"C\"); \
             INSERT INTO bookings (created_at, id) SELECT now() - interval '1 minute', id FROM unnest('{a,A}'::text[]) AS id",
        )
        .await
        .unwrap();
    for _ in 0..3 {
        reader.turn().await.unwrap();
    }
    let expected = if equal { 1 } else { 2 };
    assert_eq!(reader.delivered().await.len(), expected, "a page ends between two equal ids: one is lost");

    let refused = found(&database, &relay, "not_unique").await.expect("a row of this table was lost");
    assert_eq!(refused["level"], "error");
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("by_id") && message.contains("collation"), "{message}");
    let sql = refused["fix_sql"].as_str().unwrap();
    assert_eq!(sql, "CREATE UNIQUE INDEX CONCURRENTLY ON public.bookings (\"created_at\", \"id\");");
    let process = Process::spawn(&toml(&database, "relay", None, &relay), &["run"]);
    let (_, error) = halted(&owner, "r").await;
    assert_eq!(error["code"], "not_unique", "{error}");
    drop(process);

    owner.batch_execute("DELETE FROM bookings WHERE id COLLATE \"C\" = 'A'").await.unwrap();
    owner.batch_execute(sql).await.unwrap();
    assert_eq!(found(&database, &relay, "not_unique").await, None);
}

// Guarantee: horizon.collation
#[tokio::test(flavor = "multi_thread")]
async fn pending_key_of_another_collation_is_refused() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    loose(&owner).await;
    owner
        .batch_execute(
            "CREATE TABLE reminders (id text COLLATE loose NOT NULL, due_at timestamptz NOT NULL, \
             sent_at timestamptz); CREATE UNIQUE INDEX ON reminders (id COLLATE \"C\"); \
             GRANT SELECT, UPDATE ON reminders TO relay; \
             INSERT INTO reminders (id, due_at) VALUES ('a', now()), ('A', now())",
        )
        .await
        .unwrap();
    let relay = "[[relay]]\nname = \"r\"\n[relay.source.pending]\ntable = \"public.reminders\"\nkey = [\"id\"]\n\
                 due = \"due_at\"\nsent = \"sent_at\"\n[relay.sink.stdout]\n";
    let refused = found(&database, relay, "key_not_unique").await.expect("the mark of one row is that of both");
    assert_eq!(refused["level"], "error", "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("collation"), "{refused}");
    owner.batch_execute("DELETE FROM reminders WHERE id COLLATE \"C\" = 'A'").await.unwrap();
    owner.batch_execute(refused["fix_sql"].as_str().unwrap()).await.unwrap();
    assert_eq!(found(&database, relay, "key_not_unique").await, None);
}

/// A relay of two shards by `customer`.
fn sharded() -> String {
    stdout_relay("r", "").replacen("name = \"r\"\n", "name = \"r\"\nshards = 2\nshard_key = \"customer\"\n", 1)
}

/// Readers of the two shards by `customer`.
async fn readers(database: &Database) -> [Reader; 2] {
    let mut readers = Vec::new();
    for number in 0..2 {
        let reader = Reader::new(database, "relay").await;
        reader.shape.lock().await.shard = Some(Shard { key: "customer".into(), of: 2, number });
        readers.push(reader);
    }
    readers.try_into().unwrap_or_else(|_| unreachable!())
}

// Guarantee: horizon.shard-key
#[tokio::test(flavor = "multi_thread")]
async fn updated_shard_key_repeats_or_loses_and_is_refused() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let of = Shard { key: "customer".into(), of: 2, number: 0 }.expression("t.");
    // One key of each shard.
    let keys = format!(
        "SELECT min(customer) FROM (SELECT 'k' || n AS customer FROM generate_series(1, 50) n) t GROUP BY {of} ORDER BY {of}"
    );
    let keys: Vec<String> = owner.query(&keys, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    let insert = |shard: usize| format!("INSERT INTO bookings (customer) VALUES ('{}')", keys[shard]);
    let moved = |id: u32, shard: usize| format!("UPDATE bookings SET customer = '{}' WHERE id = {id}", keys[shard]);
    let [zero, one] = readers(&database).await;

    owner.batch_execute(&insert(0)).await.unwrap();
    zero.settled(&["1"]).await;
    owner.batch_execute(&moved(1, 1)).await.unwrap();
    one.settled(&["1"]).await; // a second time
    owner.batch_execute(&insert(0)).await.unwrap();
    owner.batch_execute(&insert(1)).await.unwrap();
    one.settled(&["1", "3"]).await;
    owner.batch_execute(&moved(2, 1)).await.unwrap();
    zero.settled(&["1"]).await; // row 2 is delivered by neither
    one.settled(&["1", "3"]).await;

    owner.batch_execute("GRANT UPDATE (customer) ON bookings TO app").await.unwrap();
    let updatable = found(&database, &sharded(), "shard_key_updatable").await.expect("a row was lost");
    assert_eq!(updatable["level"], "warn");
    let message = updatable["message"].as_str().unwrap();
    assert!(message.contains("owner postgres") && message.contains("role app"), "{message}");
    owner.batch_execute(updatable["fix_sql"].as_str().unwrap()).await.unwrap();
    assert_eq!(found(&database, &sharded(), "shard_key_updatable").await, None);

    for (role, before) in [("app", ""), ("postgres", ""), ("postgres", "SET session_replication_role = replica; ")] {
        let client = database.connect(role).await;
        let error = client.batch_execute(&format!("{before}{}", moved(3, 0))).await.expect_err(role);
        assert_eq!(error.code(), Some(&SqlState::RESTRICT_VIOLATION), "{error:?}");
        let error = error.as_db_error().unwrap();
        assert!(error.message().contains("customer") && error.hint().is_some(), "{error:?}");
    }
    owner.batch_execute("UPDATE bookings SET customer = customer, payload = 'p' WHERE id = 3").await.unwrap();
    owner.batch_execute("ALTER TABLE bookings ENABLE TRIGGER refuse_key_update").await.unwrap();
    let updatable = found(&database, &sharded(), "shard_key_updatable").await.expect("not ENABLE ALWAYS");
    owner.batch_execute(updatable["fix_sql"].as_str().unwrap()).await.unwrap();
    assert_eq!(found(&database, &sharded(), "shard_key_updatable").await, None);
    owner.batch_execute("ALTER TABLE bookings DISABLE TRIGGER refuse_key_update").await.unwrap();
    let updatable = found(&database, &sharded(), "shard_key_updatable").await.expect("it is disabled");
    let sql = updatable["fix_sql"].as_str().unwrap();
    assert!(!sql.contains("CREATE TRIGGER"), "the trigger that is there is enabled: {sql}");
    owner.batch_execute(sql).await.unwrap();
    assert_eq!(found(&database, &sharded(), "shard_key_updatable").await, None);
}

// Guarantee: horizon.shard-key
#[tokio::test(flavor = "multi_thread")]
async fn shard_key_is_refused_in_partitions_and_beside_triggers() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    owner
        .batch_execute(&format!(
            "CREATE TABLE bookings (id bigint PRIMARY KEY, created_at {CLOCK}, customer text, payload text) \
             PARTITION BY HASH (id); \
             CREATE TABLE leaf PARTITION OF bookings FOR VALUES WITH (MODULUS 1, REMAINDER 0); \
             CREATE INDEX ON bookings (created_at, id); GRANT SELECT ON bookings TO relay; \
             CREATE FUNCTION swap() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN NEW.customer := NEW.payload; RETURN NEW; END $$; \
             CREATE TRIGGER swap BEFORE UPDATE OF payload ON leaf FOR EACH ROW EXECUTE FUNCTION swap()"
        ))
        .await
        .unwrap();
    let updatable = found(&database, &sharded(), "shard_key_updatable").await.expect("the owner may update the key");
    owner.batch_execute(updatable["fix_sql"].as_str().unwrap()).await.unwrap();
    assert_eq!(found(&database, &sharded(), "shard_key_updatable").await, None);
    owner.batch_execute("INSERT INTO bookings (id, customer) VALUES (1, 'a')").await.unwrap();
    let error =
        owner.batch_execute("UPDATE bookings SET payload = 'b'").await.expect_err("the trigger changes the key");
    assert_eq!(error.code(), Some(&SqlState::RESTRICT_VIOLATION), "{error:?}");
}
