//! `verify --table` acquits Debezium, live and after a kill, and convicts a poller that reads what is older than 5 ms, of exactly
//! the rows that it lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{FutureProducer, FutureRecord};
use rustix::process::Signal;
use serde_json::Value;
use tokio_postgres::Client;

use crate::connect::Connect;
use crate::support::naive_relay::{Fault, NaiveRelay};
use crate::support::{Database, PATIENCE, Process, broker, eventually, outbox_relay, records, toml, unique};
use crate::{connector, logical};

const TABLE: &str = "CREATE TABLE public.outboxevent (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, \
    aggregatetype text NOT NULL, aggregateid text NOT NULL, type text NOT NULL, payload text, \
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()); \
    CREATE INDEX ON public.outboxevent (created_at, id); GRANT SELECT ON public.outboxevent TO relay; DROP SCHEMA outbox CASCADE";
const WRITERS: u64 = 4;

/// How long the load lasts.
fn load() -> Duration {
    let seconds = std::env::var("OUTBOX_RELAY_INCUMBENT_SECONDS").map_or(10, |text| text.parse().unwrap());
    Duration::from_secs(seconds)
}

/// Writers whose transactions stay open for up to 40 ms; one in ten is rolled back.
async fn write(database: &Database) {
    let end = std::time::Instant::now() + load();
    let writers = (0..WRITERS).map(|seed| {
        let url = database.url("postgres");
        tokio::spawn(async move {
            let mut client = outbox_testkit::postgres::connect(&url).await.unwrap();
            let mut random = fastrand::Rng::with_seed(seed);
            while std::time::Instant::now() < end {
                let transaction = client.transaction().await.unwrap();
                let insert = "INSERT INTO public.outboxevent (aggregatetype, aggregateid, type, payload) \
                              SELECT 'order', n::text, 'placed', '{}' FROM generate_series(1, $1) AS n";
                transaction.execute(insert, &[&random.i32(1..=3)]).await.unwrap();
                tokio::time::sleep(Duration::from_millis(random.u64(0..40))).await;
                let ends =
                    if random.u8(0..10) == 0 { transaction.rollback().await } else { transaction.commit().await };
                ends.unwrap();
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
}

/// Polls until told to end, and once more; what it delivers it puts into the topic.
async fn poll(client: Client, topic: String, end: Arc<AtomicBool>) {
    let mut poller = NaiveRelay::new(client, "public.outboxevent", Fault::WindowOnly);
    let servers = broker().await.bootstrap_servers();
    let producer: FutureProducer = ClientConfig::new().set("bootstrap.servers", servers).create().unwrap();
    let mut sent = 0;
    loop {
        let last = end.load(Ordering::Relaxed);
        if last {
            poller.drain().await
        } else {
            let _rows = poller.turn().await;
        }
        let delivered = poller.delivered();
        for id in &delivered[sent..] {
            let headers = OwnedHeaders::new().insert(Header { key: "id", value: Some(*id) });
            let record = FutureRecord::to(&topic).key(*id).payload("{}").headers(headers);
            producer.send(record, PATIENCE).await.unwrap();
        }
        sent = delivered.len();
        if last {
            return;
        }
    }
}

/// How often each id is in a topic.
async fn received(topic: &str) -> BTreeMap<i64, usize> {
    let mut ids = BTreeMap::new();
    for record in records(&broker().await.bootstrap_servers(), topic).await {
        *ids.entry(record.id().parse().unwrap()).or_default() += 1;
    }
    ids
}

async fn committed(owner: &Client) -> BTreeSet<i64> {
    let rows = owner.query("SELECT id FROM public.outboxevent", &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// The ids that `verify` names, by kind, once it has looked at all of these rows.
async fn named(text: &str, topic: &str, rows: usize) -> (Option<i32>, BTreeMap<String, BTreeSet<i64>>) {
    let args = ["verify", "-o", "json", "--limit", "100000", "--table", "public.outboxevent", "--id", "header:id"];
    let args = [&args[..], &["--topic", topic, "--grace", "1s"]].concat();
    let (mut code, mut document) = (None, Value::Null);
    eventually(PATIENCE * 3, async || {
        let (ended, out, log) = outbox_relay(text, &args).await;
        (code, document) = (ended, serde_json::from_str(&out).unwrap_or_else(|_| panic!("{log}")));
        document["rows"]["table"] == rows
    })
    .await;
    let mut kinds: BTreeMap<String, BTreeSet<i64>> = BTreeMap::new();
    for found in document["differences"].as_array().unwrap() {
        let kind = found["kind"].as_str().unwrap().to_owned();
        kinds.entry(kind).or_default().insert(found["id"].as_str().unwrap().parse().unwrap());
    }
    (code, kinds)
}

fn follow(text: &str, topic: &str) -> Process {
    let args =
        ["verify", "--follow", "--table", "public.outboxevent", "--id", "header:id", "--grace", "1s", "--topic", topic];
    Process::spawn(text, &args)
}

// Guarantee: verify.incumbent
#[tokio::test(flavor = "multi_thread")]
async fn debezium_is_acquitted_and_a_window_poller_is_convicted_of_exactly_what_it_lost() {
    let database = logical().await;
    let owner = database.connect("postgres").await;
    owner.batch_execute(TABLE).await.unwrap();
    let (topic, polled) = ("outbox.event.order", unique("polled"));
    for topic in [topic, &polled] {
        broker().await.create_topic(topic, 3, &[]).await.unwrap();
    }
    let text = toml(&database, "relay", Some(&broker().await.bootstrap_servers()), "");
    let mut debezium = Connect::start(&database, &connector(&database, "").await).await;
    let end = Arc::new(AtomicBool::new(false));
    let poller = tokio::spawn(poll(database.connect("postgres").await, polled.clone(), Arc::clone(&end)));
    let followed = [topic, &polled].map(|topic| follow(&text, topic));
    write(&database).await;
    end.store(true, Ordering::Relaxed);
    poller.await.unwrap();
    let rows = committed(&owner).await;
    eventually(PATIENCE * 6, async || received(topic).await.len() == rows.len()).await;

    let lost: BTreeSet<i64> = rows.difference(&received(&polled).await.into_keys().collect()).copied().collect();
    assert!(!lost.is_empty(), "the poller lost nothing of {}: nothing is proven", rows.len());
    println!("{} rows; the poller lost {}, Debezium none", rows.len(), lost.len());
    assert_eq!(named(&text, topic, rows.len()).await, (Some(0), BTreeMap::new()));
    let convicted = BTreeMap::from([("not_delivered".to_owned(), lost.clone())]);
    assert_eq!(named(&text, &polled, rows.len()).await, (Some(3), convicted));

    // Live, and in the report of the end.
    let [mut acquitted, mut convicted] = followed;
    eventually(PATIENCE * 3, async || convicted.out().contains("not_delivered")).await;
    for process in [&acquitted, &convicted] {
        process.signal(Signal::INT);
    }
    assert_eq!(acquitted.wait().await, Some(0), "{}{}", acquitted.out(), acquitted.log());
    assert!(acquitted.out().contains("public.outboxevent: equal\n"), "{}", acquitted.out());
    assert!(acquitted.out().contains(&format!("{} rows", rows.len())), "{}", acquitted.out());
    assert_eq!(convicted.wait().await, Some(3), "{}", convicted.log());
    let report = format!("public.outboxevent: different: {} not_delivered\n", lost.len());
    assert!(convicted.out().contains(&report), "{}", convicted.out());

    killed_in_the_midst(&database, &mut debezium, &owner, &text, topic).await;
}

/// After a kill Debezium may repeat rows, and loses none: `verify` names just the repeats.
async fn killed_in_the_midst(database: &Database, debezium: &mut Connect, owner: &Client, text: &str, topic: &str) {
    let kill = async {
        tokio::time::sleep(load() / 2).await;
        debezium.kill9_and_restart(database).await;
    };
    tokio::join!(write(database), kill);
    let rows = committed(owner).await;
    eventually(PATIENCE * 6, async || received(topic).await.len() == rows.len()).await;
    let (code, named) = named(text, topic, rows.len()).await;
    let repeated: BTreeSet<i64> =
        received(topic).await.into_iter().filter(|(_, count)| *count > 1).map(|(id, _)| id).collect();
    println!("{} rows with a kill; Debezium repeated {} and lost none", rows.len(), repeated.len());
    let expected = if repeated.is_empty() { BTreeMap::new() } else { BTreeMap::from([("twice".to_owned(), repeated)]) };
    assert_eq!(code, if expected.is_empty() { Some(0) } else { Some(3) });
    assert_eq!(named, expected);
}
