//! What passes by itself: nothing was changed, nothing was advanced over, and it is retried.

use tokio_postgres::Client;

use super::{BY_BATCH, BY_ROW, DIRECT, counted, customers, differences, relay};
use crate::support::outside::standing;
use crate::support::{CLOCK, Database, PATIENCE, Replica, bookings, config, database, eventually};

const PARAMETERS: &str = r#""customer", "payload", "id""#;

async fn stage() -> (Database, Client) {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    customers(&owner).await;
    (database, owner)
}

fn start(database: &Database, more: &str, statement: &str) -> Replica {
    Replica::start(&config(database, "relay", None, &relay("customers", more, statement, PARAMETERS, "")), "r1")
}

async fn book(owner: &Client, customers: &[&str]) {
    for customer in customers {
        let sql = "INSERT INTO public.bookings (customer, payload) VALUES ($1, 'p')";
        owner.execute(sql, &[customer]).await.unwrap();
    }
}

async fn error_code(owner: &Client) -> Option<String> {
    Some(standing(owner, "customers").await?.3["code"].as_str()?.to_owned())
}

// Guarantee: read-models.deadlock
#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_deadlocks_is_tried_again_and_changes_the_read_model_once() {
    let (database, owner) = stage().await;
    book(&owner, &["a", "b"]).await;
    let replica = start(&database, "[relay.turn]\ndeadline = \"20s\"", BY_ROW);
    eventually(PATIENCE * 2, async || counted(&owner, "app.customers").await == 2).await;
    // Another transaction takes the second row first, waits until the relay waits for it, and asks for the first: it
    // waits without end, so the relay's statement is the one that is given up.
    let mut other = database.connect("postgres").await;
    let transaction = other.transaction().await.unwrap();
    let patient = "SET LOCAL deadlock_timeout = '1min'; UPDATE app.customers SET bytes = bytes WHERE customer = 'b'";
    transaction.batch_execute(patient).await.unwrap();
    owner.batch_execute("INSERT INTO public.bookings (customer, payload) VALUES ('a', 'p'), ('b', 'p')").await.unwrap();
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND usename = 'relay' \
                 AND datname = current_database()";
    eventually(PATIENCE, async || owner.query_one(waits, &[]).await.unwrap().get::<_, i64>(0) == 1).await;
    transaction.batch_execute("UPDATE app.customers SET bytes = bytes WHERE customer = 'a'").await.unwrap();
    eventually(PATIENCE * 2, async || error_code(&owner).await.as_deref() == Some("sql_40P01")).await;
    transaction.commit().await.unwrap();
    eventually(PATIENCE * 2, async || counted(&owner, "app.customers").await == 4).await;
    assert_eq!(differences(&owner, "app.customers", DIRECT).await, 0);
    eventually(PATIENCE * 2, async || error_code(&owner).await.is_none()).await;
    replica.stop().await;
}

// Guarantee: read-models.deadlock
#[tokio::test(flavor = "multi_thread")]
async fn a_locked_read_model_delays_its_relay_and_halts_nothing() {
    let (database, owner) = stage().await;
    book(&owner, &["a"]).await;
    let replica = start(&database, "", BY_ROW);
    eventually(PATIENCE * 2, async || counted(&owner, "app.customers").await == 1).await;
    let mut other = database.connect("postgres").await;
    let transaction = other.transaction().await.unwrap();
    transaction.batch_execute("LOCK TABLE app.customers").await.unwrap();
    book(&owner, &["a", "c"]).await;
    eventually(PATIENCE * 2, async || error_code(&owner).await.as_deref() == Some("sql_55P03")).await;
    transaction.commit().await.unwrap();
    eventually(PATIENCE * 3, async || counted(&owner, "app.customers").await == 3).await;
    assert_eq!(differences(&owner, "app.customers", DIRECT).await, 0);
    replica.stop().await;
}

// Guarantee: read-models.deadline
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_reaches_its_deadline_changes_nothing_and_smaller_turns_get_through() {
    let (database, owner) = stage().await;
    // 40 rows of 60 ms in one statement: longer than a turn of 1 s, and than a statement may take in it.
    owner
        .batch_execute(
            "CREATE FUNCTION app.slow(bigint) RETURNS bigint LANGUAGE sql AS \
             'SELECT CASE WHEN pg_catalog.pg_sleep(0.06) IS NULL THEN 0 ELSE $1 END'; \
             INSERT INTO public.bookings (customer, payload) SELECT 'c' || n % 3, 'p' FROM generate_series(1, 40) AS n",
        )
        .await
        .unwrap();
    let slow = BY_ROW.replace("$3)", "app.slow($3))");
    assert_ne!(slow, BY_ROW);
    let replica = start(&database, "[relay.turn]\ndeadline = \"1s\"\n", &slow);
    eventually(PATIENCE * 3, async || counted(&owner, "app.customers").await == 40).await;
    assert_eq!(differences(&owner, "app.customers", DIRECT).await, 0);
    let lag = "SELECT count(*) FROM outbox.cursor WHERE position_id = '40'";
    assert_eq!(owner.query_one(lag, &[]).await.unwrap().get::<_, i64>(0), 1);
    replica.stop().await;
}

// Guarantee: read-models.deadline
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_is_left_out_before_half_done_work_does_not_commit_it() {
    let (database, owner) = stage().await;
    // Three rows of 0.4 s in one piece, of which a turn of 1 s is at the last when it ends; behind a row that does not match, which the
    // position could pass by itself.
    owner
        .batch_execute(
            "CREATE FUNCTION app.slow(bigint) RETURNS bigint LANGUAGE sql AS \
             'SELECT CASE WHEN pg_catalog.pg_sleep(0.4) IS NULL THEN 0 ELSE $1 END'; \
             INSERT INTO public.bookings (customer, payload) VALUES ('c0', 'other'), ('c0', 'p'), ('c1', 'p'), ('c2', 'p')",
        )
        .await
        .unwrap();
    let slow = BY_ROW.replace("$3)", "app.slow($3))");
    let relays = relay("customers", "[relay.turn]\ndeadline = \"1s\"\n", &slow, PARAMETERS, "");
    let table = "table = \"public.bookings\"\n";
    let relays = relays.replace(table, &format!("{table}where = {{ payload = \"p\" }}\n"));
    let replica = Replica::start(&config(&database, "relay", None, &relays), "r1");
    let end = "SELECT count(*) FROM outbox.cursor WHERE position_id = '4'";
    eventually(PATIENCE * 3, async || owner.query_one(end, &[]).await.unwrap().get::<_, i64>(0) == 1).await;
    let wanted = DIRECT.replace("GROUP BY", "WHERE payload = 'p' GROUP BY");
    assert_eq!((counted(&owner, "app.customers").await, differences(&owner, "app.customers", &wanted).await), (3, 0));
    replica.stop().await;
}

// Guarantee: read-models.deadline
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_takes_longer_than_a_statement_may_gets_through_in_smaller_ones() {
    let (database, owner) = stage().await;
    // 300 rows of 10 ms: fewer than a batch may have, and longer than the 600 ms that a statement has.
    owner
        .batch_execute(
            "CREATE FUNCTION app.slow(bigint) RETURNS bigint LANGUAGE sql AS \
             'SELECT CASE WHEN pg_catalog.pg_sleep(0.01) IS NULL THEN 0 ELSE $1 END'; \
             INSERT INTO public.bookings (customer, payload) SELECT 'c' || n % 3, 'p' FROM generate_series(1, 300) AS n",
        )
        .await
        .unwrap();
    let slow = BY_BATCH.replace("array_agg(u.id", "array_agg(app.slow(u.id)");
    assert_ne!(slow, BY_BATCH);
    let relays = relay("customers", "[relay.turn]\ndeadline = \"1s\"\n", &slow, PARAMETERS, "each = \"batch\"");
    let replica = Replica::start(&config(&database, "relay", None, &relays), "r1");
    eventually(PATIENCE * 3, async || counted(&owner, "app.customers").await == 300).await;
    assert_eq!(differences(&owner, "app.customers", DIRECT).await, 0);
    replica.stop().await;
}

// Guarantee: read-models.connection
#[tokio::test(flavor = "multi_thread")]
async fn a_holder_whose_connection_is_ended_leaves_nothing_behind() {
    let (database, owner) = stage().await;
    let replica = start(&database, "", BY_ROW);
    for round in 0..10_i64 {
        let fill = "INSERT INTO public.bookings (customer, payload) SELECT 'c' || n % 7, 'p' FROM generate_series(1, 500) AS n";
        owner.batch_execute(fill).await.unwrap();
        // Whoever is at the statement just now, in whichever phase of it.
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'relay' \
                   AND datname = current_database() AND state <> 'idle' AND query LIKE '%app.customers%'";
        eventually(PATIENCE * 2, async || {
            !owner.query(end, &[]).await.unwrap().is_empty() || counted(&owner, "app.customers").await > round * 500
        })
        .await;
    }
    eventually(PATIENCE * 4, async || counted(&owner, "app.customers").await == 5_000).await;
    assert_eq!(differences(&owner, "app.customers", DIRECT).await, 0);
    replica.stop().await;
}
