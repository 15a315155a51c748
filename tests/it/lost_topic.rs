//! A topic that is deleted while its relay runs.

use outbox_testkit::kafka::delete_topic;

use crate::support::outside::halted;
use crate::support::{
    CLOCK, PATIENCE, Process, bookings, broker, database, eventually, ids, kafka_relay, toml, unique,
};

#[tokio::test(flavor = "multi_thread")]
async fn topic_deleted_while_it_runs_is_named() {
    let (database, broker) = (database().await, broker().await);
    let owner = bookings(&database, CLOCK).await;
    let topic = unique("deleted");
    broker.create_topic(&topic, 1, &[]).await.unwrap();
    let servers = broker.bootstrap_servers();
    let text = toml(&database, "relay", Some(&servers), &kafka_relay("events", &topic, ""));
    let add = async || owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    add().await;
    let process = Process::spawn(&text, &["run"]);
    eventually(PATIENCE * 2, async || ids(&servers, &topic).await == ["1"]).await;
    delete_topic(&servers, &topic).await.unwrap();
    add().await;
    let (_, error) = halted(&owner, "events").await;
    let message = error["message"].as_str().unwrap();
    assert!(message.contains(&format!("topic {topic}")), "{error}");
    drop(process);
}
