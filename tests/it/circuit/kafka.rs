//! The circuit of a Kafka cluster, under two replicas and two cursors: the broker is killed and comes back.

use std::time::{Duration, Instant};

use outbox_testkit::kafka::RealBroker;

use super::{all_circuits, circuit, gauges, logged, numbers, why_says_open};
use crate::support::outside::{lines, listener};
use crate::support::receiver::Receiver;
use crate::support::{CLOCK, PATIENCE, Process, bookings, database, eventually, ids, kafka_relay, toml, unique};

const CURSORS: [&str; 2] = ["a", "b"];

// Guarantee: failures.circuit
#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_is_gone_opens_the_circuit_of_all_its_cursors_and_what_waited_arrives_in_order() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let mut broker = RealBroker::start().await.unwrap();
    let (servers, receiver) = (broker.bootstrap_servers(), Receiver::start());
    let topics = CURSORS.map(unique);
    for topic in &topics {
        broker.create_topic(topic, 1, &[]).await.unwrap();
    }
    let turn = "turn = { deadline = \"1s\" }";
    let relays = [kafka_relay("a", &topics[0], turn), kafka_relay("b", &topics[1], turn), receiver.relay("other", "")];
    let text = toml(&database, "relay", Some(&servers), &relays.concat());
    let replicas = ["r1", "r2"].map(|name| Process::spawn(&text, &["run", "--replica-id", name]));
    let listeners = [listener(&replicas[0]).await, listener(&replicas[1]).await];
    let insert = "INSERT INTO bookings (payload) SELECT 'p' FROM generate_series(1, $1::int)";
    owner.execute(insert, &[&20]).await.unwrap();
    for topic in &topics {
        eventually(PATIENCE * 2, || async { ids(&servers, topic).await.len() == 20 }).await;
    }

    broker.kill9().await.unwrap();
    for _ in 0..5 {
        owner.execute(insert, &[&20]).await.unwrap();
    }
    eventually(PATIENCE * 2, || async { receiver.accepted("other").len() == 120 }).await;
    all_circuits(&owner, &CURSORS, true, PATIENCE * 6).await;
    gauges(&listeners, "kafka", &CURSORS, 1).await;
    for cursor in CURSORS {
        assert_eq!(circuit(&text, cursor).await["circuit"], "open");
        why_says_open(&text, cursor).await;
        assert!(logged(&replicas, cursor, "circuit open: "), "{cursor}");
    }
    a_newcomer_leaves_the_circuit_open(&owner, &text).await;
    owner.execute(insert, &[&1]).await.unwrap();
    eventually(PATIENCE, || async { receiver.accepted("other").len() == 121 }).await;

    broker.restart().await.unwrap();
    all_circuits(&owner, &CURSORS, false, PATIENCE * 6).await;
    for topic in &topics {
        eventually(PATIENCE * 4, || async { ids(&servers, topic).await.len() >= 121 }).await;
        let arrived = ids(&servers, topic).await;
        let mut distinct = arrived.clone();
        distinct.dedup();
        println!("{} of 121 rows came again after the broker's return", arrived.len() - distinct.len());
        // A probe may have been stored by the dying broker although no answer came: it alone may stand there twice.
        assert_eq!(distinct, numbers(1..=121), "nothing lost, in order");
    }
    gauges(&listeners, "kafka", &CURSORS, 0).await;
    for cursor in CURSORS {
        assert!(logged(&replicas, cursor, "circuit closed: "), "{cursor}");
    }
    assert_eq!(receiver.accepted("other"), numbers(1..=121));
    for mut replica in replicas {
        replica.signal(rustix::process::Signal::TERM);
        assert_eq!(tokio::time::timeout(Duration::from_secs(20), replica.wait()).await.unwrap(), Some(0));
    }
    broker.stop().await.unwrap();
}

/// A replica that starts during the outage cannot ask the broker, and says so; the outage is as old as before.
async fn a_newcomer_leaves_the_circuit_open(owner: &tokio_postgres::Client, text: &str) {
    let opened = "SELECT min(circuit_opened_at)::text FROM outbox.cursor_status HAVING count(circuit_opened_at) = 2";
    let before: String = owner.query_one(opened, &[]).await.unwrap().get(0);
    let newcomer = Process::spawn(text, &["run", "--replica-id", "r3"]);
    for cursor in CURSORS {
        let refused = |line: &serde_json::Value| {
            line["cursor"] == cursor
                && line["message"].as_str().is_some_and(|text| text.starts_with("relay cannot run"))
        };
        eventually(PATIENCE * 3, || async { lines(&newcomer).iter().any(refused) }).await;
    }
    // It checks again every 5 s: at no moment the outage is a younger one.
    let (begun, mut looks) = (Instant::now(), tokio::time::interval(Duration::from_millis(50)));
    while begun.elapsed() < Duration::from_secs(6) {
        looks.tick().await;
        let now = owner.query_opt(opened, &[]).await.unwrap();
        assert_eq!(now.map(|row| row.get::<_, String>(0)).as_ref(), Some(&before));
    }
}
