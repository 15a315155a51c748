//! A scan's two halves are one statement: that they are carried out in their order.

use serde_json::Value;
use tokio_postgres::SimpleQueryMessage;

use crate::support::{database, sessions};

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
