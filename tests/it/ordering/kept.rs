//! What the relay takes for granted of the plans of its other repeated statements: the order in which a scan's parts are
//! carried out, and that what is read again and again is not planned again and again.

use outbox_relay::source::table::inspect;
use serde_json::Value;
use tokio_postgres::SimpleQueryMessage;

use crate::support::{Reader, database, sessions};

/// A child of a plan's node.
fn child<'a>(node: &'a Value, relationship: &str) -> &'a Value {
    let children = node["Plans"].as_array().unwrap();
    children.iter().find(|child| child["Parent Relationship"] == relationship).unwrap()
}

#[tokio::test]
async fn a_scan_reads_the_clock_before_it_looks_for_writers_whichever_plan_is_kept() {
    let database = database().await;
    let session = sessions(&database, "relay", "plans").open().await.unwrap();
    session
        .batch_execute(&format!("PREPARE scan AS {}", include_str!("../../../src/source/sql/writers.sql")))
        .await
        .unwrap();
    for mode in ["force_generic_plan", "force_custom_plan"] {
        session.batch_execute(&format!("SET plan_cache_mode = '{mode}'")).await.unwrap();
        let explain = "EXPLAIN (VERBOSE, FORMAT JSON) EXECUTE scan ('{1,2}')";
        let messages = session.simple_query(explain).await.unwrap();
        let row = messages.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        });
        let plan: Value = serde_json::from_str(row.unwrap()).unwrap();
        let join = &plan[0]["Plan"];
        // A nested loop takes a row of its outer side before it asks its inner side for any.
        assert_eq!(
            (&join["Node Type"], &join["Join Type"]),
            (&"Nested Loop".into(), &"Left".into()),
            "{mode}: {plan:#}"
        );
        let (clock, look) = (child(join, "Outer"), child(join, "Inner"));
        assert_eq!(clock["Output"], serde_json::json!(["clock_timestamp()"]), "{mode}: {plan:#}");
        assert!(look.to_string().contains("pg_lock_status"), "{mode}: {plan:#}");
        assert!(!look.to_string().contains("clock_timestamp"), "{mode}: {plan:#}");
    }
}

#[tokio::test]
async fn reading_the_catalogue_again_and_again_is_not_planned_again_and_again() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    let table = "CREATE TABLE bookings (id bigint PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp()); \
                 CREATE INDEX ON bookings (created_at, id); GRANT SELECT ON bookings TO relay";
    owner.batch_execute(table).await.unwrap();
    let reader = Reader::of(&database, "relay", "table = \"public.bookings\"").await;
    let config = reader.shape.lock().await.config.clone();
    let session = sessions(&database, "relay", "plans").open().await.unwrap();
    let times = 10_i64;
    for _ in 0..times {
        inspect(&session, &config).await.unwrap();
    }
    // PostgreSQL decides after five custom plans.
    let plans = "SELECT statement, custom_plans FROM pg_prepared_statements WHERE NOT from_sql AND custom_plans + generic_plans >= $1";
    let plans = session.query(plans, &[&times]).await.unwrap();
    assert!(plans.len() >= 7, "the statements of {times} readings: {}", plans.len());
    for row in plans {
        let (statement, custom): (String, i64) = (row.get(0), row.get(1));
        assert_eq!(custom, 5, "planned anew each time: {statement}");
    }
}
