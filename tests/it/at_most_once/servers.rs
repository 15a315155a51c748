//! Servers that crash and come back: PostgreSQL under the relay, Kafka behind it.

use std::collections::BTreeSet;
use std::time::Duration;

use outbox_testkit::kafka::RealBroker;
use outbox_testkit::postgres::{Options, Postgres};

use super::{Stage, Target, guarantee};
use crate::support::outside::json;
use crate::support::receiver::Receiver;
use crate::support::relays::toml_of;
use crate::support::servers::prepare;
use crate::support::{
    CLOCK, PATIENCE, Process, bookings, database, eventually, kafka_relay, outbox_relay, toml, unique,
};

// Guarantee: at-most-once.postgres
#[tokio::test(flavor = "multi_thread")]
async fn a_postgres_that_crashes_sends_nothing_twice_and_what_is_missing_is_listed() {
    // fsync is on: what was committed must survive, or the test would blame the relay for PostgreSQL's loss.
    let mut postgres = Postgres::start(Options { fsync: true, ..Options::default() }).await.unwrap();
    prepare(&postgres).await;
    let receiver = Receiver::start();
    receiver.answer(|_| (200, Duration::from_millis(2)));
    let relay = receiver.relay("r", &guarantee("[relay.turn]\nrows = 5"));
    let text = toml_of(postgres.url("relay", "template_outbox").trim_end_matches("?sslmode=disable"), None, &relay);
    let mut owner = postgres.connect("postgres", "template_outbox").await.unwrap();
    let table = "CREATE TABLE public.bookings (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, \
                 created_at timestamptz NOT NULL DEFAULT clock_timestamp(), payload text); \
                 CREATE INDEX ON public.bookings (created_at, id); GRANT SELECT ON public.bookings TO relay";
    owner.batch_execute(table).await.unwrap();
    let replicas: Vec<Process> =
        (0..2).map(|n| Process::spawn(&text, &["run", "--replica-id", &format!("r{n}")])).collect();
    let mut random = fastrand::Rng::with_seed(17);
    for _ in 0..5 {
        let insert = "INSERT INTO bookings (payload) SELECT 'p' FROM generate_series(1, 40)";
        owner.batch_execute(insert).await.unwrap();
        let asked = receiver.requests().len() + random.usize(1..20);
        eventually(PATIENCE * 6, async || receiver.requests().len() >= asked).await;
        postgres.kill9().await.unwrap();
        postgres.restart().await.unwrap();
        owner = postgres.connect("postgres", "template_outbox").await.unwrap();
    }
    let rows: i64 = owner.query_one("SELECT count(*) FROM bookings", &[]).await.unwrap().get(0);
    let last = "SELECT (SELECT max(id) FROM bookings)::text = position_id AND token IS NULL FROM outbox.cursor";
    eventually(PATIENCE * 6, async || owner.query_one(last, &[]).await.unwrap().get(0)).await;
    let arrived: Vec<i64> =
        receiver.requests().iter().map(|request| request.key.strip_prefix("r/").unwrap().parse().unwrap()).collect();
    assert!(arrived.windows(2).all(|pair| pair[0] < pair[1]), "twice or out of order: {arrived:?}");
    let (code, out, log) = outbox_relay(&text, &["request", "list", "--unknown", "-o", "json"]).await;
    assert_eq!(code, Some(0), "{log}");
    let listed = json(&out)["requests"].as_array().unwrap().clone();
    let listed: BTreeSet<i64> =
        listed.iter().map(|request| request["key"][0].as_str().unwrap().parse().unwrap()).collect();
    let ids = owner.query("SELECT id FROM bookings", &[]).await.unwrap();
    let missing: BTreeSet<i64> = ids.iter().map(|row| row.get(0)).filter(|id| !arrived.contains(id)).collect();
    println!("5 crashes, {rows} rows: {} missing, {} listed as unknown", missing.len(), listed.len());
    assert!(missing.is_subset(&listed), "missing and not listed: {:?}", missing.difference(&listed));
    drop(replicas);
    postgres.stop().await.unwrap();
}

// Guarantee: at-most-once.not-sent
#[tokio::test(flavor = "multi_thread")]
async fn a_kafka_that_is_out_makes_nothing_unknown_and_gets_everything_when_it_is_back() {
    let mut broker = RealBroker::start().await.unwrap();
    let (database, topic) = (database().await, unique("out"));
    let owner = bookings(&database, CLOCK).await;
    broker.create_topic(&topic, 1, &[]).await.unwrap();
    let servers = broker.bootstrap_servers();
    let text = toml(&database, "relay", Some(&servers), &kafka_relay("r", &topic, &guarantee("")));
    let stage = Stage { database, owner, target: Target::Kafka { servers, topic }, toml: text };
    let _replica = stage.replica("r0");
    stage.insert(20).await;
    stage.settled(20).await;
    broker.kill9().await.unwrap();
    stage.insert(20).await;
    let failing = async || {
        let sql = "SELECT count(*) FROM outbox.cursor_status WHERE cursor = 'r' AND last_error ->> 'class' = 'retry'";
        stage.owner.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) == 1
    };
    eventually(PATIENCE * 3, failing).await;
    assert_eq!(stage.position().await, (20, false), "nothing is reserved for a cluster that does not answer");
    broker.restart().await.unwrap();
    stage.settled(40).await;
    assert_eq!(stage.arrived().await, (1..=40).collect::<Vec<_>>());
    assert_eq!(stage.unknown().await, BTreeSet::new());
    broker.stop().await.unwrap();
}
