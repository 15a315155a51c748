//! A committed row reaches its topic, in order, with its headers, by the least-privilege role.

use crate::support::{
    CLOCK, PATIENCE, Replica, bookings, broker, config, database, eventually, ids, kafka_relay, records, unique,
};

// Guarantee: delivery.basic
#[tokio::test(flavor = "multi_thread")]
async fn committed_rows_reach_the_topic_once_and_in_order() {
    let (database, broker) = (database().await, broker().await);
    let owner = bookings(&database, CLOCK).await;
    let topic = unique("basics");
    broker.create_topic(&topic, 1, &[]).await.unwrap();
    owner
        .batch_execute("INSERT INTO bookings (payload) SELECT 'p' || n FROM generate_series(1, 5000) AS n")
        .await
        .unwrap();
    let config = config(&database, "relay", Some(&broker.bootstrap_servers()), &kafka_relay("basics", &topic, ""));
    let replica = Replica::start(&config, "r1");
    let servers = broker.bootstrap_servers();
    eventually(PATIENCE * 2, async || ids(&servers, &topic).await.len() >= 5000).await;
    owner.batch_execute("INSERT INTO bookings (payload) VALUES ('last')").await.unwrap();
    eventually(PATIENCE, async || ids(&servers, &topic).await.len() >= 5001).await;
    replica.stop().await;
    let records = records(&servers, &topic).await;
    let expected: Vec<String> = (1..=5001).map(|id: i32| id.to_string()).collect();
    assert_eq!(records.iter().map(|record| record.id().to_owned()).collect::<Vec<_>>(), expected);
    assert_eq!(records[0].text(), "p1");
    assert_eq!(records[0].key.as_deref(), Some("c"));
    assert_eq!(records[0].header("relay"), Some("basics"));
    assert!(records[0].header("created_at").is_some_and(|at| at.ends_with('Z') && at.len() == 27));
}
