//! A keyed topic that is given more partitions, and which partition a key belongs to.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use outbox_relay::batch::Batch;
use outbox_relay::position::Timestamp;
use outbox_relay::sink::kafka::{Cluster, KafkaSink, Passed};
use outbox_relay::sink::{self, Class, Mode, Published, Sink};
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminOptions, NewPartitions};
use rdkafka::producer::{FutureProducer, FutureRecord};
use serde_json::Value;
use tokio_postgres::Client;

use super::{admin, all};
use crate::support::outside::{halted, is_halted, lines};
use crate::support::{
    CLOCK, PATIENCE, Process, Record, Replica, bookings, broker, config, database, eventually, kafka_relay,
    outbox_relay, toml, unique,
};

/// So many keys, so many rows of each at a time.
const KEYS: i32 = 20;
const EACH: i32 = 5;

async fn insert(owner: &Client) {
    let sql = "INSERT INTO bookings (customer, payload) \
               SELECT 'customer-' || k, 'p' FROM generate_series(1, $1) AS n, generate_series(1, $2) AS k ORDER BY n, k";
    owner.execute(sql, &[&EACH, &KEYS]).await.unwrap();
}

pub(super) async fn grow(topic: &str, partitions: usize) {
    let change = NewPartitions::new(topic, partitions);
    let done = admin().await.create_partitions([&change], &AdminOptions::new()).await.unwrap();
    assert!(done.iter().all(Result::is_ok), "{done:?}");
}

/// Writes rows of a key of their own, each after the one before it has arrived, until something is seen: a change of the
/// topic is met by a turn, so rows must come. Answers how many it took.
pub(super) async fn marks_until(owner: &Client, topic: &str, mut seen: impl AsyncFnMut() -> bool) -> usize {
    let before = all(topic).await.len();
    let mut marks = 0;
    let meeting = async {
        loop {
            owner.batch_execute("INSERT INTO bookings (customer) VALUES ('mark')").await.unwrap();
            marks += 1;
            eventually(PATIENCE * 2, async || seen().await || all(topic).await.len() == before + marks).await;
            if seen().await {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE * 2, meeting).await.expect("a turn meets the change");
    marks
}

/// The rows of each key from row `from` on: partitions and ids, as they lie there.
fn by_key(records: &[Record], from: i64) -> BTreeMap<&str, Vec<(i32, i64)>> {
    let mut keys: BTreeMap<&str, Vec<(i32, i64)>> = BTreeMap::new();
    for record in records {
        let id = record.id().parse().unwrap();
        if id >= from {
            keys.entry(record.key.as_deref().unwrap()).or_default().push((record.partition, id));
        }
    }
    keys
}

/// Each key has all of its rows once, in one partition, in order.
fn keeps_order(records: &[Record], from: i64, each: usize) {
    let keys = by_key(records, from);
    assert_eq!(keys.len(), usize::try_from(KEYS).unwrap());
    for (key, rows) in keys {
        assert_eq!(rows.len(), each, "{key}: {rows:?}");
        assert!(rows.windows(2).all(|pair| pair[0].0 == pair[1].0 && pair[0].1 < pair[1].1), "{key}: {rows:?}");
    }
}

fn warned(process: &Process) -> Option<Value> {
    let going_on = "the topic's partitions have changed: going on";
    lines(process).into_iter().find(|line| line["message"] == going_on)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_told_to_goes_on_with_more_partitions_says_so_and_keeps_each_keys_order_from_then_on() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let topic = unique("going-on");
    broker().await.create_topic(&topic, 2, &[]).await.unwrap();
    let relays = format!("{}on_partition_change = \"continue\"\n", kafka_relay("r", &topic, ""));
    let text = toml(&database, "relay", Some(&broker().await.bootstrap_servers()), &relays);
    let process = Process::spawn(&text, &["run"]);
    insert(&owner).await;
    let all_of = usize::try_from(KEYS * EACH).unwrap();
    eventually(PATIENCE * 2, || async { all(&topic).await.len() == all_of }).await;
    grow(&topic, 5).await;
    let marks = marks_until(&owner, &topic, async || warned(&process).is_some()).await;
    let warning = warned(&process).unwrap();
    assert_eq!((&warning["known"], &warning["found"], &warning["cursor"]), (&2.into(), &5.into(), &"r".into()));
    eventually(PATIENCE, || async { all(&topic).await.len() == all_of + marks }).await;
    let from: i64 = owner.query_one("SELECT max(id) + 1 FROM bookings", &[]).await.unwrap().get(0);
    insert(&owner).await;
    eventually(PATIENCE, || async { all(&topic).await.len() == 2 * all_of + marks }).await;
    let records = all(&topic).await;
    keeps_order(&records, from, usize::try_from(EACH).unwrap());
    assert!(records.iter().any(|record| record.partition >= 2), "the new partitions are used");
    let halts = "SELECT count(*) FROM outbox.cursor_status WHERE halted";
    assert_eq!(owner.query_one(halts, &[]).await.unwrap().get::<_, i64>(0), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_halted_by_more_partitions_has_sent_nothing_to_them_and_goes_on_in_order_once_adopted() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let topic = unique("adopted");
    broker().await.create_topic(&topic, 2, &[]).await.unwrap();
    let servers = broker().await.bootstrap_servers();
    let relays = kafka_relay("r", &topic, "");
    let replicas = ["r1", "r2"].map(|name| Replica::start(&config(&database, "relay", Some(&servers), &relays), name));
    insert(&owner).await;
    let all_of = usize::try_from(KEYS * EACH).unwrap();
    eventually(PATIENCE * 2, || async { all(&topic).await.len() == all_of }).await;
    grow(&topic, 5).await;
    // Rows that come before a replica has seen the change still go by the old number.
    let marks = marks_until(&owner, &topic, async || is_halted(&owner, "r").await).await;
    let (_, error) = halted(&owner, "r").await;
    assert_eq!((&error["class"], &error["code"]), (&"fatal".into(), &"partition_count_changed".into()));
    let from: i64 = owner.query_one("SELECT max(id) + 1 FROM bookings", &[]).await.unwrap().get(0);
    insert(&owner).await;
    assert!(all(&topic).await.iter().all(|record| record.partition < 2), "nothing went by the new number");

    let text = toml(&database, "relay", Some(&servers), &relays);
    let (code, _, log) = outbox_relay(&text, &["cursor", "adopt", "r", "--yes"]).await;
    assert_eq!(code, Some(0), "{log}");
    eventually(PATIENCE * 2, || async { all(&topic).await.len() == 2 * all_of + marks }).await;
    let records = all(&topic).await;
    keeps_order(&records, from, usize::try_from(EACH).unwrap());
    assert!(records.iter().any(|record| record.partition >= 2), "the new partitions are used");
    for replica in replicas {
        replica.stop().await;
    }
}

/// A publication of rows with these numbers, each with a key of its own, spread over so many partitions.
async fn published(sink: &Sink, ids: Range<usize>, partitions: i32) -> Published {
    let mut batch = Batch::new(sink.fields().len());
    for id in ids {
        let (id, key) = (id.to_string(), format!("customer-{id}"));
        batch.push(Timestamp::from_pg_micros(0), &id, [Some(&b"p"[..]), Some(key.as_bytes())]);
    }
    let publishing = async {
        let mut publication = sink.begin(Mode { partitions: Some(partitions), ..Mode::default() }).await.unwrap();
        publication.push(&batch).await;
        publication.settle().await;
        publication.finish()
    };
    tokio::time::timeout(PATIENCE * 2, publishing).await.expect("the broker answers")
}

/// Of the producers that rest while a topic grows only the last one is told. Each of the others was lent again and again, until the third
/// refusal halted its relay.
#[tokio::test(flavor = "multi_thread")]
async fn a_producer_that_knows_fewer_partitions_is_lent_once_and_says_nothing_of_the_cluster() {
    let database = database().await;
    let topic = unique("outdated");
    broker().await.create_topic(&topic, 1, &[]).await.unwrap();
    let servers = broker().await.bootstrap_servers();
    let config = config(&database, "relay", Some(&servers), &kafka_relay("r", &topic, ""));
    let sink::Config::Kafka(kafka) = &config.relays[0].sink else { panic!("a Kafka sink") };
    let cluster = Arc::new(Cluster::new(config.kafka.clone().unwrap()));
    let sink = Sink::Kafka(KafkaSink::new(cluster, "r", kafka, None, 1_000_000, Passed::default()).unwrap());
    assert_eq!(published(&sink, 0..1, 1).await, Published { acknowledged: 1, stopped: None, suspects: 1 });

    grow(&topic, 4).await;
    let admin = admin().await;
    eventually(PATIENCE, async || {
        let found = admin.inner().fetch_metadata(Some(&topic), PATIENCE).unwrap();
        found.topics()[0].partitions().len() == 4
    })
    .await;
    let outdated = published(&sink, 1..21, 4).await;
    let failure = outdated.stopped.expect("a partition that it does not know");
    assert_eq!((failure.class, failure.code.as_str()), (Class::Retry, "kafka_unknown_partition"), "{failure:?}");
    assert!(failure.message.starts_with(&format!("topic {topic}: ")) && !failure.is_outage(), "{failure:?}");
    let next = 1 + outdated.acknowledged;
    let rest = Published { acknowledged: 21 - next, stopped: None, suspects: 1 };
    assert_eq!(published(&sink, next..21, 4).await, rest, "another producer");
    assert_eq!(all(&topic).await.len(), 21);
}

/// So many rows have no key at all.
const WITHOUT: usize = 20;

/// Keys of every length from 0 to 40 bytes, some of them no ASCII, and none.
fn keys() -> Vec<Option<String>> {
    let mut random = fastrand::Rng::with_seed(5);
    let mut keys = vec![None; WITHOUT];
    for length in 0..=40 {
        for _ in 0..6 {
            keys.push(Some((0..length).map(|_| random.char('!'..='~')).collect()));
        }
    }
    for letters in 1..=13 {
        keys.push(Some("ü日🦀".chars().cycle().take(letters).collect()));
    }
    keys
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_lands_where_librdkafkas_own_partitioner_puts_it() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute("ALTER TABLE bookings ALTER customer DROP NOT NULL").await.unwrap();
    let (ours, theirs) = (unique("ours"), unique("theirs"));
    for topic in [&ours, &theirs] {
        broker().await.create_topic(topic, 7, &[]).await.unwrap();
    }
    let servers = broker().await.bootstrap_servers();
    let keys = keys();
    let insert = "INSERT INTO bookings (customer, payload) SELECT k, 'p' FROM unnest($1::text[]) AS k";
    owner.execute(insert, &[&keys]).await.unwrap();
    let relays = kafka_relay("r", &ours, "on_poison = \"dead_letter\"");
    let replica = Replica::start(&config(&database, "relay", Some(&servers), &relays), "r1");

    let producer: FutureProducer =
        ClientConfig::new().set("bootstrap.servers", &servers).set("partitioner", "murmur2_random").create().unwrap();
    let mut expected: BTreeMap<String, i32> = BTreeMap::new();
    for key in keys.iter().flatten() {
        let record = FutureRecord::to(&theirs).key(key).payload("p");
        let delivered = producer.send(record, PATIENCE).await.unwrap();
        expected.insert(key.clone(), delivered.partition);
    }
    eventually(PATIENCE * 2, || async { all(&ours).await.len() == keys.len() - WITHOUT }).await;
    replica.stop().await;
    let mut used = std::collections::BTreeSet::new();
    for record in all(&ours).await {
        let key = record.key.as_deref().unwrap();
        assert_eq!(record.partition, expected[key], "{key:?}");
        used.insert(record.partition);
    }
    println!("{} keys over {} partitions", expected.len(), used.len());
    assert_eq!(used.len(), 7);
    // librdkafka puts a record without a key anywhere; here a row without one has no place in the order.
    let sql = "SELECT count(*) FROM outbox.dead_letter AS d JOIN bookings AS b ON b.id::text = d.message_id \
               WHERE d.error ->> 'code' = 'null_key' AND b.customer IS NULL";
    let aside: i64 = owner.query_one(sql, &[]).await.unwrap().get(0);
    assert_eq!(usize::try_from(aside).unwrap(), WITHOUT);
}
