//! Topics that the relay's user may not write: named by a row, or by the relay.

use std::collections::HashSet;
use std::time::Instant;

use outbox_testkit::kafka::{BrokerOptions, RealBroker};
use tokio_postgres::Client;

use crate::support::kafka_acl::{Operation, allow, deny};
use crate::support::outside::halted;
use crate::support::{
    CLOCK, Database, PATIENCE, Replica, bookings, config, database, eventually, ids, kafka_relay, outbox_relay, toml,
};

const LETTERS: &str =
    "SELECT message_id FROM outbox.dead_letter WHERE error ->> 'code' = 'kafka_topic_authorization_failed'";

/// A broker with an open topic, one that may not even be seen, and one that may not be written.
async fn guarded() -> (RealBroker, String) {
    let broker = RealBroker::start_with(&BrokerOptions { authorizes: true, ..BrokerOptions::default() }).await.unwrap();
    let servers = broker.bootstrap_servers();
    for topic in ["open", "hidden", "read"] {
        broker.create_topic(topic, 1, &[]).await.unwrap();
    }
    deny(&servers, "hidden", Operation::All).await;
    deny(&servers, "read", Operation::Write).await;
    (broker, servers)
}

async fn rows(owner: &Client, topics: &[&str]) {
    owner.execute("INSERT INTO bookings (customer) SELECT unnest($1::text[])", &[&topics]).await.unwrap();
}

fn routed(on_poison: &str) -> String {
    kafka_relay("routed", "{{ customer }}", &format!("on_poison = \"{on_poison}\""))
}

fn replica(database: &Database, servers: &str, relays: &str) -> Replica {
    Replica::start(&config(database, "relay", Some(servers), relays), "r1")
}

// Guarantee: failures.denied-topic
#[tokio::test(flavor = "multi_thread")]
async fn denied_topics_of_rows_are_dead_lettered_and_others_flow() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let (broker, servers) = guarded().await;
    let topics: Vec<_> = (0..10).flat_map(|_| ["hidden", "open", "read"]).collect();
    rows(&owner, &topics).await;
    let begun = Instant::now();
    let replica = replica(&database, &servers, &routed("dead_letter"));
    eventually(PATIENCE * 10, async || owner.query(LETTERS, &[]).await.unwrap().len() == 20).await;
    let took = begun.elapsed();
    eventually(PATIENCE, async || ids(&servers, "open").await.last().is_some_and(|id| id == "29")).await;
    replica.stop().await;
    let mut open = ids(&servers, "open").await;
    let mut seen = HashSet::new();
    open.retain(|id| seen.insert(id.clone()));
    assert_eq!(open, (0..10).map(|n| (3 * n + 2).to_string()).collect::<Vec<_>>());
    assert!(took.as_secs() < 20, "{took:?}");
    broker.stop().await.unwrap();
}

// Guarantee: failures.denied-topic
#[tokio::test(flavor = "multi_thread")]
async fn denied_topic_halts_at_row_or_relay_until_granted() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let (broker, servers) = guarded().await;
    rows(&owner, &["open", "read"]).await;
    let relays = format!("{}{}", routed("halt"), kafka_relay("fixed", "hidden", ""));
    let replica = replica(&database, &servers, &relays);
    let (message_id, error) = halted(&owner, "routed").await;
    assert_eq!((message_id.as_deref(), &error["class"]), (Some("2"), &"poison".into()), "{error}");
    assert_eq!(error["code"], "kafka_topic_authorization_failed");
    assert!(error["message"].as_str().unwrap().starts_with("topic read: "), "{error}");
    assert_eq!(halted(&owner, "fixed").await.1["class"], "fatal");
    allow(&servers, "read", Operation::Write).await;
    allow(&servers, "hidden", Operation::All).await;
    let text = toml(&database, "relay", Some(&servers), &relays);
    for (name, topic, count) in [("routed", "read", 1), ("fixed", "hidden", 2)] {
        assert_eq!(outbox_relay(&text, &["cursor", "resume", name]).await.0, Some(0));
        eventually(PATIENCE, async || ids(&servers, topic).await.len() == count).await;
    }
    replica.stop().await;
    broker.stop().await.unwrap();
}
