//! The writer storm: long transactions, rollbacks, savepoints, COPY and multi-row statements from sixteen writers, and
//! nothing is lost or out of order, with both defaults of `created_at`, plain and partitioned.

use std::time::Duration;

use outbox_testkit::bookings::{self, CreatedAt, Layout, Load, Table, Writers};
use outbox_testkit::consumer::Consumer;
use outbox_testkit::delivery::{Verdict, check, verdict};

use crate::support::{PATIENCE, Replica, broker, config, database, eventually, kafka_relay, unique};

async fn storm(role: &str, table: Table, payload: std::ops::RangeInclusive<usize>, writers: usize) {
    let (database, broker) = (database().await, broker().await);
    let owner = database.connect("postgres").await;
    table.create(&owner).await.unwrap();
    let topic = unique("storm");
    broker.create_topic(&topic, 2, &[("max.message.bytes", "8000000")]).await.unwrap();
    let servers = broker.bootstrap_servers();
    let consumer = Consumer::start(&servers, &topic).await.unwrap();
    let config = config(&database, role, Some(&servers), &kafka_relay("storm", &topic, ""));
    let replicas = [Replica::start(&config, "r1"), Replica::start(&config, "r2")];

    let load = Load { writers, rows_per_second: None, payload, ..Load::default() };
    let writers = Writers::start(&database.url("app"), load).await.unwrap();
    tokio::time::sleep(Duration::from_secs(6)).await; // how long the storm lasts
    let written = writers.stop().await.unwrap();
    let committed = bookings::committed(&owner).await.unwrap();
    written.agrees_with(&committed).unwrap();
    assert!(written.rolled_back > 0, "the storm rolled nothing back: {written:?}");

    eventually(PATIENCE * 6, async || consumer.count() >= committed.len()).await;
    for replica in replicas {
        replica.stop().await;
    }
    let received = consumer.stop().await.unwrap();
    let report = check(&committed, &received.streams(), &received.gaps);
    println!("{} rows in {} transactions", committed.len(), written.transactions);
    assert_eq!(verdict(&committed, &[&report], false), Verdict::Pass, "{report:?}");
}

// Guarantee: delivery.storm-clock
#[tokio::test(flavor = "multi_thread")]
async fn storm_with_clock_timestamp_on_a_plain_table_loses_nothing_and_keeps_order() {
    storm("relay", Table::PLAIN, 100..=4_000, 16).await;
}

// Guarantee: delivery.storm-clock
#[tokio::test(flavor = "multi_thread")]
async fn storm_with_clock_timestamp_on_a_partitioned_table_loses_nothing_and_keeps_order() {
    let table = Table { created_at: CreatedAt::ClockTimestamp, layout: Layout::Ranges };
    storm("relay_stats", table, 100..=4_000, 16).await;
}

// Guarantee: delivery.storm-now
#[tokio::test(flavor = "multi_thread")]
async fn storm_with_now_on_a_plain_table_loses_nothing_and_keeps_order() {
    storm("relay", Table { created_at: CreatedAt::Now, layout: Layout::Plain }, 100..=4_000, 16).await;
}

// Guarantee: delivery.storm-now
#[tokio::test(flavor = "multi_thread")]
async fn storm_with_now_on_a_partitioned_table_loses_nothing_and_keeps_order() {
    let table = Table { created_at: CreatedAt::Now, layout: Layout::Hashes };
    storm("relay_stats", table, 100..=4_000, 16).await;
}

// Guarantee: delivery.payload-2mb
#[tokio::test(flavor = "multi_thread")]
async fn storm_with_payloads_of_up_to_two_megabytes_loses_nothing_and_keeps_order() {
    storm("relay", Table::PLAIN, 100..=2_000_000, 4).await;
}
