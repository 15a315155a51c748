//! The first request of a producer for a partition is refused, and those behind it are on their way already.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use outbox_relay::batch::Batch;
use outbox_relay::config::Config;
use outbox_relay::position::Timestamp;
use outbox_relay::sink::kafka::{Cluster, ClusterConfig, KafkaSink, Passed, ProducerKind};
use outbox_relay::sink::{self, Flow, Mode, Sink};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord};

use crate::support::kafka_proxy::KafkaProxy;
use crate::support::{PATIENCE, config, database, eventually, ids, kafka_relay, records, unique};

/// The ids in the order of their first delivery.
fn first_deliveries(ids: &[String]) -> Vec<u64> {
    let mut seen = BTreeSet::new();
    ids.iter().filter(|id| seen.insert(id.as_str())).map(|id| id.parse().unwrap()).collect()
}

/// A sink with a producer whose connection is there.
async fn sink(config: &Config, topic: &str) -> Sink {
    let sink::Config::Kafka(kafka) = &config.relays[0].sink else { panic!("a Kafka sink") };
    let cluster = Arc::new(Cluster::new(config.kafka.clone().unwrap()));
    let sink = KafkaSink::new(cluster, "events", kafka, None, 1_000_000, Passed::default()).unwrap();
    sink.warm(topic, PATIENCE).await.unwrap();
    Sink::Kafka(sink)
}

/// Value, key, and what a topic's template takes.
fn batch(sink: &Sink, ids: Range<i64>) -> Batch {
    let mut batch = Batch::new(sink.fields().len());
    let value = [b'v'; 2_000];
    for id in ids {
        let key = format!("c{}", id % 50);
        let fields = [Some(&value[..]), Some(key.as_bytes()), Some(&b""[..])];
        batch.push(Timestamp::from_pg_micros(id), &id.to_string(), fields.into_iter().take(sink.fields().len()));
    }
    batch
}

/// Apache Kafka 4.3 (KAFKA-14359, KAFKA-15591): with idempotence and without a gap, as our producers are configured.
#[tokio::test(flavor = "multi_thread")]
async fn broker_appends_second_request_when_first_is_refused() {
    let proxy = KafkaProxy::start().await;
    let topic = unique("first");
    proxy.broker.create_topic(&topic, 1, &[]).await.unwrap();
    let cluster = Cluster::new(ClusterConfig { bootstrap_servers: proxy.servers(), ..ClusterConfig::default() });
    let producer: BaseProducer = cluster.producer_config(ProducerKind::prompt(1_048_588)).create().unwrap();
    proxy.arm();
    let (servers, value) = (proxy.broker.bootstrap_servers(), "v".repeat(2_000));
    for id in 1..=500_u32 {
        let header = Header { key: "id", value: Some(&id.to_string()) };
        let headers = OwnedHeaders::new().insert(header);
        let record = BaseRecord::<(), str>::to(&topic).partition(0).payload(&value).headers(headers);
        producer.send(record).map_err(|(error, _)| error).unwrap();
        if id == 1 {
            eventually(PATIENCE, async || proxy.holds()).await;
        }
    }
    eventually(PATIENCE, async || {
        producer.poll(Duration::ZERO);
        !ids(&servers, &topic).await.is_empty()
    })
    .await;
    assert_eq!(proxy.spoiled(), 1);
    assert_ne!(ids(&servers, &topic).await[0], "1", "the broker refuses a gap before the first request now");
}

// Guarantee: failures.first-request
#[tokio::test(flavor = "multi_thread")]
async fn rows_keep_order_when_first_request_is_refused() {
    let proxy = KafkaProxy::start().await;
    let servers = proxy.broker.bootstrap_servers();
    let database = database().await;
    for (form, partitions) in [("fixed", 1), ("fixed", 3), ("routed", 1), ("routed", 3), ("unordered", 3)] {
        let topic = unique(form);
        proxy.broker.create_topic(&topic, partitions, &[]).await.unwrap();
        let relay = kafka_relay("events", &topic, "");
        let relay = match form {
            "routed" => relay.replace(&topic, &format!("{topic}{{{{ payload }}}}")),
            "unordered" => relay.replace("key = \"customer\"", "unordered = true"),
            _ => relay,
        };
        let sink = sink(&config(&database, "relay", Some(&proxy.servers()), &relay), &topic).await;
        let known = (form == "fixed").then_some(partitions);
        let mode = Mode { partitions: known, ..Mode::default() };

        proxy.arm();
        let mut publication = sink.begin(mode).await.unwrap();
        assert_eq!(publication.push(&batch(&sink, 0..1)).await, Flow::Continue);
        eventually(PATIENCE, async || proxy.holds()).await;
        let _ = publication.push(&batch(&sink, 1..500)).await;
        publication.settle().await;
        let acknowledged = i64::try_from(publication.finish().acknowledged).unwrap();
        let mut publication = sink.begin(mode).await.unwrap();
        assert_eq!(publication.push(&batch(&sink, acknowledged..500)).await, Flow::Continue);
        publication.settle().await;
        publication.finish();

        let arrived = records(&servers, &topic).await;
        let mut distinct = BTreeSet::new();
        for partition in 0..partitions {
            let of_partition = arrived.iter().filter(|record| record.partition == partition);
            let ids: Vec<_> = of_partition.map(|record| record.id().to_owned()).collect();
            let first = first_deliveries(&ids);
            assert!(first.is_sorted(), "partition {partition} of {partitions}, {form}: {first:?}");
            distinct.extend(first);
        }
        assert_eq!(distinct.len(), 500, "{form}, {partitions} partitions, {acknowledged} acknowledged");
    }
    assert_eq!(proxy.spoiled(), 5);
}
