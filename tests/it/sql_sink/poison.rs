//! What a row's own error does: the rows before it stay changed, it halts its relay or is put aside, and can be sent again.

use serde_json::Value;
use tokio_postgres::Client;

use super::relay;
use crate::support::outside::{fixed, halted};
use crate::support::{CLOCK, Database, PATIENCE, Replica, bookings, config, database, eventually, outbox_relay, toml};

const ROWS: i64 = 700;

const BY_ROW: &str = "INSERT INTO app.seen SELECT $1, $2::integer";
const BY_BATCH: &str = "INSERT INTO app.seen SELECT u.id, u.payload::integer FROM unnest($1, $2) AS u (id, payload)";

/// 700 rows, of which 301 has a payload that is no number; the statement notes id and payload.
async fn stage(more: &str, statement: &str, each: &str) -> (Database, Client, String, Replica) {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner
        .batch_execute(&format!(
            "CREATE SCHEMA app; GRANT USAGE ON SCHEMA app TO relay; \
             CREATE TABLE app.seen (id bigint PRIMARY KEY, payload integer CHECK (payload <> 13), \
             at timestamptz DEFAULT clock_timestamp(), n bigint GENERATED ALWAYS AS IDENTITY); \
             GRANT INSERT ON app.seen TO relay; \
             INSERT INTO public.bookings (payload) SELECT CASE n WHEN 301 THEN 'x' ELSE n::text || '00' END \
             FROM generate_series(1, {ROWS}) AS n"
        ))
        .await
        .unwrap();
    let relays = relay("seen", more, statement, r#""id", "payload""#, &format!("each = \"{each}\""));
    let replica = Replica::start(&config(&database, "relay", None, &relays), "r1");
    let text = toml(&database, "relay", None, &relays);
    (database, owner, text, replica)
}

/// How many rows were noted, and the highest of them in their order.
async fn seen(owner: &Client) -> (i64, Option<i64>, bool) {
    let sql = "SELECT count(*), max(id), array_agg(id ORDER BY n) = array_agg(id ORDER BY id) FROM app.seen";
    let row = owner.query_one(sql, &[]).await.unwrap();
    (row.get(0), row.get(1), row.get::<_, Option<bool>>(2).unwrap_or(true))
}

async fn halts(statement: &str, each: &str) {
    let (_database, owner, text, replica) = stage("", statement, each).await;
    let (message_id, error) = halted(&owner, "seen").await;
    assert_eq!((message_id.as_deref(), error["code"].as_str()), (Some("301"), Some("sql_22P02")), "{error}");
    assert_eq!(error["class"], Value::from("poison"));
    // The halt is noted by another session than the one that commits the rows before it.
    eventually(PATIENCE, async || seen(&owner).await == (300, Some(300), true)).await;
    owner.batch_execute("UPDATE bookings SET payload = '5' WHERE id = 301").await.unwrap();
    let (code, out, log) = outbox_relay(&text, &["cursor", "resume", "seen"]).await;
    assert_eq!(code, Some(0), "{out}{log}");
    fixed(&owner, "seen").await;
    eventually(PATIENCE * 4, async || seen(&owner).await == (ROWS, Some(ROWS), true)).await;
    replica.stop().await;
}

// Guarantee: read-models.poison
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_the_statement_refuses_halts_its_relay_and_the_rows_before_it_stay_changed() {
    halts(BY_ROW, "row").await;
}

// Guarantee: read-models.poison
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_is_refused_within_a_batch_is_found_and_halts_its_relay() {
    halts(BY_BATCH, "batch").await;
}

async fn is_put_aside(statement: &str, each: &str) {
    let (_database, owner, text, replica) = stage("on_poison = \"dead_letter\"", statement, each).await;
    eventually(PATIENCE * 4, async || seen(&owner).await.0 == ROWS - 1).await;
    assert_eq!(seen(&owner).await, (ROWS - 1, Some(ROWS), true));
    let letter = "SELECT id, message_id, sink, target, convert_from(payload, 'UTF8'), error->>'code', state \
                  FROM outbox.dead_letter";
    let row = owner.query_one(letter, &[]).await.unwrap();
    let text_of = |column: usize| row.get::<_, String>(column);
    assert_eq!([1, 2, 3, 4, 5].map(text_of), ["301", "sql", "database", r#"["301","x"]"#, "sql_22P02"]);
    let redrive = ["dead-letter", "redrive", &row.get::<_, i64>(0).to_string(), "--yes"].map(str::to_owned);
    let redrive: Vec<&str> = redrive.iter().map(String::as_str).collect();
    let state = async || owner.query_one(letter, &[]).await.unwrap().get::<_, String>(6);

    // As it is, it is refused again; fixed, the same statement takes it, once.
    let attempts = "SELECT attempts FROM outbox.dead_letter";
    assert_eq!(outbox_relay(&text, &redrive).await.0, Some(0));
    eventually(PATIENCE * 4, async || owner.query_one(attempts, &[]).await.unwrap().get::<_, i32>(0) == 2).await;
    assert_eq!((state().await.as_str(), seen(&owner).await.0), ("dead", ROWS - 1));
    owner.batch_execute("UPDATE bookings SET payload = '5' WHERE id = 301").await.unwrap();
    assert_eq!(outbox_relay(&text, &redrive).await.0, Some(0));
    eventually(PATIENCE * 4, async || state().await == "redriven").await;
    let noted = "SELECT payload FROM app.seen WHERE id = 301";
    assert_eq!(owner.query_one(noted, &[]).await.unwrap().get::<_, i32>(0), 5);
    assert_eq!(seen(&owner).await.0, ROWS);
    replica.stop().await;
}

// Guarantee: read-models.redrive
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_row_is_put_aside_and_taken_by_the_same_statement_when_it_is_sent_again() {
    is_put_aside(BY_ROW, "row").await;
}

// Guarantee: read-models.poison
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_is_refused_within_a_batch_is_put_aside_and_the_others_are_taken() {
    is_put_aside(BY_BATCH, "batch").await;
}

// Guarantee: read-models.poison
#[tokio::test(flavor = "multi_thread")]
async fn a_deferred_constraint_refuses_its_own_row_and_not_the_turn() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner
        .batch_execute(
            "CREATE SCHEMA app; GRANT USAGE ON SCHEMA app TO relay; CREATE TABLE app.known (customer text PRIMARY KEY); \
             INSERT INTO app.known VALUES ('a'), ('b'); \
             CREATE TABLE app.seen (id bigint, customer text REFERENCES app.known DEFERRABLE INITIALLY DEFERRED); \
             GRANT INSERT ON app.seen TO relay; \
             INSERT INTO public.bookings (customer) VALUES ('a'), ('b'), ('stranger'), ('a')",
        )
        .await
        .unwrap();
    let relays =
        relay("seen", "on_poison = \"dead_letter\"", "INSERT INTO app.seen VALUES ($1, $2)", r#""id", "customer""#, "");
    let replica = Replica::start(&config(&database, "relay", None, &relays), "r1");
    let seen = async || {
        let row = owner.query_one("SELECT COALESCE(array_agg(id ORDER BY id), '{}') FROM app.seen", &[]).await.unwrap();
        row.get::<_, Vec<i64>>(0)
    };
    eventually(PATIENCE * 4, async || seen().await == [1, 2, 4]).await;
    let letter = owner.query_one("SELECT message_id, error->>'code' FROM outbox.dead_letter", &[]).await.unwrap();
    assert_eq!((letter.get(0), letter.get(1)), ("3", "sql_23503"));
    replica.stop().await;
}
