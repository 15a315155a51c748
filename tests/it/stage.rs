//! The stage itself: servers that survive a kill, and processes and directories that do not survive this one.

use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use outbox_testkit::bookings::{self, CreatedAt, Layout, Load, Table, Writers};
use outbox_testkit::consumer::Consumer;
use outbox_testkit::kafka::{MockBroker, RealBroker};
use outbox_testkit::postgres::{Auth, MAJOR, Options, Postgres, connect, password};

use rdkafka::config::ClientConfig;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{FutureProducer, FutureRecord};

use crate::support::{PATIENCE, broker, database, eventually};

#[tokio::test]
async fn postgres_keeps_committed_rows_through_a_kill_and_leaves_nothing_behind() {
    let mut postgres = Postgres::start(Options::default()).await.unwrap();
    let client = postgres.connect("postgres", "postgres").await.unwrap();
    client.batch_execute("CREATE TABLE kept (id int); INSERT INTO kept VALUES (7)").await.unwrap();

    postgres.kill9().await.unwrap();
    eventually(PATIENCE, || async { client.is_closed() }).await;
    let before = Instant::now();
    postgres.restart().await.unwrap();
    println!("PostgreSQL accepts connections {:?} after the restart began", before.elapsed());
    let client = postgres.connect("postgres", "postgres").await.unwrap();
    let id: i32 = client.query_one("SELECT id FROM kept", &[]).await.unwrap().get(0);
    assert_eq!(id, 7);

    let dir = postgres.socket_dir().to_owned();
    postgres.kill9().await.unwrap();
    postgres.stop().await.unwrap();
    assert!(!dir.exists());
}

// Guarantee: observe.versions
#[tokio::test]
async fn the_server_has_the_major_version_that_was_asked_for() {
    let client = database().await.connect("relay").await;
    let version: String = client.query_one("SHOW server_version_num", &[]).await.unwrap().get(0);
    println!("PostgreSQL {version}");
    let major = version.parse::<u32>().unwrap() / 10_000;
    assert!((15..=18).contains(&major), "tested are 15 to 18, this is {version}");
    if let Ok(wanted) = std::env::var(MAJOR) {
        assert_eq!(wanted, major.to_string());
    }
}

#[tokio::test]
async fn postgres_with_passwords_refuses_a_connection_without_one() {
    let options = Options { auth: Auth::Own, ..Options::default() };
    let postgres = Postgres::start(options).await.unwrap();
    assert!(postgres.url("postgres", "postgres").contains(&password("postgres")));
    let client = postgres.connect("postgres", "postgres").await.unwrap();
    client.batch_execute("CREATE ROLE relay LOGIN PASSWORD 'right'").await.unwrap();
    assert!(postgres.connect("relay", "postgres").await.is_err());
    postgres.stop().await.unwrap();
}

// Guarantee: observe.demo-private
#[tokio::test]
async fn demo_server_refuses_superuser_without_password() {
    let postgres = Postgres::start(Options::default()).await.unwrap();
    let client = postgres.connect("postgres", "postgres").await.unwrap();
    let (port, dir) = (postgres.port(), postgres.socket_dir().display().to_string());
    for host in ["127.0.0.1", &dir] {
        let url = format!("host={host} port={port} user=postgres dbname=postgres");
        assert!(connect(&url).await.is_err(), "{host}");
    }
    let trusted = "SELECT count(*) FROM pg_hba_file_rules WHERE auth_method <> 'scram-sha-256'";
    assert_eq!(client.query_one(trusted, &[]).await.unwrap().get::<_, i64>(0), 0);
    let mode = std::fs::metadata(postgres.socket_dir()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    assert!(!postgres.socket_dir().join("password").exists(), "the file for initdb is gone");
    postgres.stop().await.unwrap();
}

#[tokio::test]
async fn every_test_has_a_database_of_its_own() {
    let (one, other) = (database().await, database().await);
    one.connect("postgres").await.batch_execute("CREATE TABLE mine ()").await.unwrap();
    let seen = other.connect("relay").await.query("SELECT FROM pg_class WHERE relname = 'mine'", &[]).await.unwrap();
    assert!(seen.is_empty());
}

#[tokio::test]
async fn the_real_broker_survives_a_kill_on_its_port() {
    let mut broker = RealBroker::start().await.unwrap();
    let servers = broker.bootstrap_servers();
    broker.create_topic("kept", 3, &[("max.message.bytes", "2000000")]).await.unwrap();
    assert!(broker.create_topic("kept", 3, &[]).await.is_err(), "the topic exists");
    broker.kill9().await.unwrap();
    let before = Instant::now();
    broker.restart().await.unwrap();
    println!("Apache Kafka answers {:?} after the restart began", before.elapsed());
    assert_eq!(broker.bootstrap_servers(), servers);
    assert!(broker.create_topic("kept", 3, &[]).await.is_err(), "the topic still exists");
    broker.stop().await.unwrap();
}

#[tokio::test]
async fn the_shared_broker_and_the_in_process_one_make_topics() {
    broker().await.create_topic("stage", 1, &[]).await.unwrap();
    MockBroker::start().unwrap().create_topic("stage", 1).unwrap();
}

#[tokio::test]
async fn writers_and_table_agree_about_what_was_committed() {
    for (created_at, layout) in [
        (CreatedAt::ClockTimestamp, Layout::Plain),
        (CreatedAt::Now, Layout::Ranges),
        (CreatedAt::ClockTimestamp, Layout::Hashes),
    ] {
        let database = database().await;
        let owner = database.connect("postgres").await;
        Table { created_at, layout }.create(&owner).await.unwrap();
        let load = Load {
            writers: 6,
            rows_per_second: None,
            payload: 100..=20_000,
            longest_pause: Duration::from_millis(50),
            seed: 7,
        };
        let writers = Writers::start(&database.url("app"), load).await.unwrap();
        eventually(PATIENCE, || async { writers.committed() > 500 }).await;
        let written = writers.stop().await.unwrap();
        let committed = bookings::committed(&owner).await.unwrap();
        written.agrees_with(&committed).unwrap();
        assert!(written.rolled_back > 0 && written.unknown == 0, "{} rolled back", written.rolled_back);
        assert!((written.ids.len() as u64) < written.rows, "some rows came by COPY");
    }
}

#[tokio::test]
async fn the_consumer_sees_every_record_with_its_headers_and_names_lost_offsets() {
    let real = broker().await;
    real.create_topic("consumed", 2, &[]).await.unwrap();
    let mock = MockBroker::start().unwrap();
    mock.create_topic("consumed", 1).unwrap();
    // The in-process broker keeps 5 MiB a partition: the first of 100 times 100 kB are gone without a word.
    for (servers, partitions, lossy) in [(real.bootstrap_servers(), 2, false), (mock.bootstrap_servers(), 1, true)] {
        let producer: FutureProducer = ClientConfig::new().set("bootstrap.servers", &servers).create().unwrap();
        let payload = vec![b'x'; 100_000];
        let sent: Vec<_> = (0..100)
            .map(|row| {
                let (id, at) = (row.to_string(), "2026-11-21T08:00:00.000001Z");
                let headers = OwnedHeaders::new()
                    .insert(Header { key: "id", value: Some(&id) })
                    .insert(Header { key: "created_at", value: Some(at) });
                let record = FutureRecord::<(), _>::to("consumed").partition(row % partitions).payload(&payload);
                producer.send_result(record.headers(headers)).map_err(|(error, _)| error).unwrap()
            })
            .collect();
        for delivery in sent {
            delivery.await.unwrap().unwrap();
        }
        let consumer = Consumer::start(&servers, "consumed").await.unwrap();
        let all = || consumer.look(|got| got.partitions.values().any(|p| p.iter().any(|r| r.id == "99")));
        eventually(PATIENCE, || async { all() && (lossy || consumer.count() == 100) }).await;
        let received = consumer.stop().await.unwrap();
        assert_eq!(!received.gaps.is_empty(), lossy, "{:?}", received.gaps);
        let last = received.partitions[&(99 % partitions)].last().unwrap();
        assert_eq!((last.id.as_str(), last.payload_bytes), ("99", 100_000));
        assert_eq!(last.created_at.unwrap().to_string(), "2026-11-21T08:00:00.000001Z");
    }
}
