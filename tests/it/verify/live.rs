//! What is in flight, hidden or denied while `verify` looks is no difference.

use std::time::Duration;

use outbox_testkit::kafka::{BrokerOptions, RealBroker};
use rdkafka::ClientConfig;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};
use rustix::process::Signal;

use super::{delivered, delivered_by, differences, insert, verify};
use crate::support::kafka_acl::{Operation, allow, deny};
use crate::support::{CLOCK, PATIENCE, Process, bookings, broker, database, eventually, kafka_relay, toml};

// Guarantee: verify.live
#[tokio::test(flavor = "multi_thread")]
async fn rows_that_come_while_replicas_are_killed_raise_no_false_alarm() {
    let relay = delivered_by(10, 3, |topic| kafka_relay("events", topic, "")).await;
    let writer = tokio::spawn(async move {
        for _ in 0..150 {
            insert(&relay.owner, 20).await;
        }
        relay.owner
    });
    let mut verified = 0;
    while !writer.is_finished() || verified < 6 {
        let mut replica = Process::spawn(&relay.text, &["run"]);
        let (code, document, log) = verify(&relay.text, &["events"]).await;
        replica.signal(Signal::KILL);
        replica.wait().await;
        assert!(matches!(code, Some(0 | 3)), "{log}");
        let alarms: Vec<String> = differences(&document).into_iter().filter(|one| !one.starts_with("twice ")).collect();
        assert!(alarms.is_empty(), "{alarms:?} {document}");
        verified += 1;
    }
    let replica = Process::spawn(&relay.text, &["run"]);
    let owner = writer.await.unwrap();
    let passed = "SELECT (SELECT position_id FROM outbox.cursor) = (SELECT max(id)::text FROM bookings)";
    eventually(PATIENCE * 3, async || {
        owner.query_one(passed, &[]).await.unwrap().get::<_, Option<bool>>(0) == Some(true)
    })
    .await;
    let (_, document, log) = verify(&relay.text, &["events"]).await;
    assert_eq!(
        (&document["rows"]["table"], &document["rows"]["delivered"]),
        (&3010.into(), &3010.into()),
        "{document}{log}"
    );
    drop(replica);
}

// Guarantee: verify.live
#[tokio::test(flavor = "multi_thread")]
async fn records_behind_an_open_transaction_of_another_producer_are_waited_for() {
    let relay = delivered(3).await;
    let producer: BaseProducer = ClientConfig::new()
        .set("bootstrap.servers", broker().await.bootstrap_servers())
        .set("transactional.id", &relay.topic)
        .create()
        .unwrap();
    let topic = relay.topic.clone();
    let producer = tokio::task::spawn_blocking(move || {
        producer.init_transactions(PATIENCE).unwrap();
        producer.begin_transaction().unwrap();
        producer.send(BaseRecord::<str, str>::to(&topic).key("k").payload("open")).unwrap();
        producer.flush(PATIENCE).unwrap();
        producer
    });
    let producer = producer.await.unwrap();
    insert(&relay.owner, 3).await;
    super::drain(&relay.text).await;
    let text = relay.text.clone();
    let verifying = tokio::spawn(async move { verify(&text, &["events"]).await });
    // It must not have ended by then; on a slow machine it has not yet looked.
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(!verifying.is_finished(), "{:?}", verifying.await);
    tokio::task::spawn_blocking(move || producer.abort_transaction(PATIENCE).unwrap()).await.unwrap();
    let (code, document, log) = verifying.await.unwrap();
    assert_eq!(code, Some(0), "{document}{log}");
    assert_eq!(document["rows"]["topic"], 6);
}

// Guarantee: verify.usage
#[tokio::test(flavor = "multi_thread")]
async fn denied_topic_names_the_right_that_is_missing() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let broker = RealBroker::start_with(&BrokerOptions { authorizes: true, ..BrokerOptions::default() }).await.unwrap();
    let servers = broker.bootstrap_servers();
    broker.create_topic("denied", 1, &[]).await.unwrap();
    insert(&owner, 3).await;
    let text = toml(&database, "relay", Some(&servers), &kafka_relay("events", "denied", ""));
    super::drain(&text).await;
    for operation in [Operation::All, Operation::Read] {
        deny(&servers, "denied", operation).await;
        let (code, _, log) = verify(&text, &["events"]).await;
        assert_eq!(code, Some(1), "{log}");
        assert!(
            log.contains("topic denied") && log.contains("--operation Read --operation Describe --topic denied"),
            "{log}"
        );
        allow(&servers, "denied", operation).await;
    }
    let (code, document, log) = verify(&text, &["events"]).await;
    assert_eq!(code, Some(0), "{document}{log}");
    broker.stop().await.unwrap();
}
