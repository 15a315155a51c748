//! Servers and connections fail under load; the relay heals without a restart, nothing is lost, order is kept.

use std::time::Duration;

use outbox_relay::delivery::{Verdict, check, verdict};
use outbox_relay::demo::bookings::{self, Load, Table, Writers};
use outbox_relay::demo::consumer::Consumer;
use outbox_relay::demo::kafka::RealBroker;
use outbox_relay::demo::postgres::{Options, Postgres};

use crate::support::servers::prepare;
use crate::support::{Database, PATIENCE, Replica, broker, config, database, eventually, kafka_relay, unique};

fn load() -> Load {
    Load {
        writers: 4,
        rows_per_second: Some(500.0),
        payload: 100..=2_000,
        longest_pause: Duration::from_millis(50),
        ..Load::default()
    }
}

/// Every committed row has arrived; first deliveries are in order.
async fn faithful(database: &Database, consumer: Consumer) -> usize {
    let owner = database.connect("postgres").await;
    let committed = bookings::committed(&owner).await.unwrap();
    eventually(PATIENCE * 6, async || {
        let (streams, gaps) = consumer.look(|received| (received.streams(), received.gaps.clone()));
        check(&committed, &streams, &gaps).distinct == committed.len()
    })
    .await;
    let received = consumer.stop().await.unwrap();
    let report = check(&committed, &received.streams(), &received.gaps);
    println!("{} rows, {} duplicates", committed.len(), report.duplicates());
    assert_eq!(verdict(&committed, &[&report], true), Verdict::Pass, "{report:?}");
    report.duplicates()
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_ended_at_random_lose_nothing_and_keep_order() {
    let (database, broker) = (database().await, broker().await);
    let owner = database.connect("postgres").await;
    Table::PLAIN.create(&owner).await.unwrap();
    let (servers, topic) = (broker.bootstrap_servers(), unique("ended"));
    broker.create_topic(&topic, 2, &[]).await.unwrap();
    let consumer = Consumer::start(&servers, &topic).await.unwrap();
    let config = config(&database, "relay", Some(&servers), &kafka_relay("bookings", &topic, ""));
    let replicas = [Replica::start(&config, "r1"), Replica::start(&config, "r2")];
    let writers = Writers::start(&database.url("app"), load()).await.unwrap();
    let mut random = fastrand::Rng::with_seed(7);
    let mut ended = 0;
    while ended < 30 {
        let before = writers.committed();
        eventually(PATIENCE, async || writers.committed() > before + 30).await;
        let rows = owner
            .query(
                "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'outbox-relay/%' \
                 AND datname = current_database()",
                &[],
            )
            .await
            .unwrap();
        if let Some(row) = random.choice(&rows) {
            owner.execute("SELECT pg_terminate_backend($1)", &[&row.get::<_, i32>(0)]).await.unwrap();
            ended += 1;
        }
    }
    writers.stop().await.unwrap();
    faithful(&database, consumer).await;
    for replica in replicas {
        replica.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn broker_killed_and_restarted_under_load_loses_nothing_and_keeps_order() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    Table::PLAIN.create(&owner).await.unwrap();
    let mut broker = RealBroker::start().await.unwrap();
    let (servers, topic) = (broker.bootstrap_servers(), unique("killed"));
    broker.create_topic(&topic, 2, &[]).await.unwrap();
    let consumer = Consumer::start(&servers, &topic).await.unwrap();
    let config = config(&database, "relay", Some(&servers), &kafka_relay("bookings", &topic, ""));
    let replica = Replica::start(&config, "r1");
    let writers = Writers::start(&database.url("app"), load()).await.unwrap();
    for _ in 0..2 {
        let before = consumer.count();
        eventually(PATIENCE * 4, async || consumer.count() > before + 300).await;
        broker.kill9().await.unwrap();
        let committed = writers.committed();
        eventually(PATIENCE, async || writers.committed() > committed + 300).await;
        broker.restart().await.unwrap();
    }
    writers.stop().await.unwrap();
    faithful(&database, consumer).await;
    replica.stop().await;
    broker.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_killed_and_restarted_under_load_loses_nothing_and_keeps_order() {
    // fsync is on: what was committed must survive, or the test would blame the relay for PostgreSQL's loss.
    let mut postgres = Postgres::start(Options { fsync: true, ..Options::default() }).await.unwrap();
    prepare(&postgres).await;
    let broker = broker().await;
    let (servers, topic) = (broker.bootstrap_servers(), unique("crashed"));
    broker.create_topic(&topic, 2, &[]).await.unwrap();
    let owner = postgres.connect("postgres", "template_outbox").await.unwrap();
    Table::PLAIN.create(&owner).await.unwrap();
    let url = postgres.url("relay", "template_outbox");
    let relays = kafka_relay("bookings", &topic, "");
    let toml = crate::support::relays::toml_of(&url, Some(&servers), &relays);
    let config = crate::support::relays::parse(&toml);
    let consumer = Consumer::start(&servers, &topic).await.unwrap();
    let replica = Replica::start(&config, "r1");
    for _ in 0..2 {
        let writers = Writers::start(&postgres.url("app", "template_outbox"), load()).await.unwrap();
        eventually(PATIENCE * 2, async || writers.committed() > 500).await;
        postgres.kill9().await.unwrap();
        drop(writers);
        postgres.restart().await.unwrap();
    }
    let owner = postgres.connect("postgres", "template_outbox").await.unwrap();
    let committed = bookings::committed(&owner).await.unwrap();
    eventually(PATIENCE * 6, async || {
        let (streams, gaps) = consumer.look(|received| (received.streams(), received.gaps.clone()));
        check(&committed, &streams, &gaps).distinct == committed.len()
    })
    .await;
    replica.stop().await;
    let received = consumer.stop().await.unwrap();
    let report = check(&committed, &received.streams(), &received.gaps);
    println!("{} rows, {} duplicates", committed.len(), report.duplicates());
    assert!(report.lost.is_empty() && report.out_of_order.is_empty() && report.phantom.is_empty(), "{report:?}");
    postgres.stop().await.unwrap();
}
