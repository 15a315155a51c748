//! Servers and connections fail under load; the relay heals without a restart, nothing is lost, order is kept.

use std::time::{Duration, Instant};

use outbox_testkit::bookings::{self, Load, Table, Writers};
use outbox_testkit::consumer::Consumer;
use outbox_testkit::delivery::{Verdict, check, verdict};
use outbox_testkit::kafka::RealBroker;
use outbox_testkit::postgres::{Options, Postgres};

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

// Guarantee: failures.connections
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

// Guarantee: failures.broker
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

// Guarantee: failures.ddl
#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_hangs_in_the_midst_of_a_backlog_leaves_the_applications_ddl_alone() {
    const ROWS: usize = 100_000;
    let database = database().await;
    let owner = database.connect("postgres").await;
    Table::PLAIN.create(&owner).await.unwrap();
    let sql = format!(
        "INSERT INTO public.bookings (created_at, customer, region, phone, payload) \
         SELECT now() - interval '1 hour' + n * interval '100 us', 'c' || n % 97, 'eu', '+4912345', repeat('x', 1000) \
         FROM generate_series(1, {ROWS}) AS n"
    );
    owner.batch_execute(&sql).await.unwrap();
    let broker = RealBroker::start().await.unwrap();
    let (servers, topic) = (broker.bootstrap_servers(), unique("hangs"));
    broker.create_topic(&topic, 2, &[]).await.unwrap();
    let consumer = Consumer::start(&servers, &topic).await.unwrap();
    // Turns grow to several times what may wait to be published and what the producer takes: readings wait for room.
    let relays = kafka_relay("bookings", &topic, "turn.bytes = \"1MiB\"");
    let replica = Replica::start(&config(&database, "relay", Some(&servers), &relays), "r1");
    eventually(PATIENCE * 2, async || consumer.count() > 20_000).await;
    broker.freeze().unwrap();
    let mut worst = Duration::ZERO;
    for n in 0..3 {
        let begun = Instant::now();
        owner.batch_execute(&format!("ALTER TABLE bookings ADD COLUMN note{n} text")).await.unwrap();
        worst = worst.max(begun.elapsed());
    }
    let passed = "SELECT position_id::bigint FROM outbox.cursor";
    let passed: i64 = owner.query_one(passed, &[]).await.unwrap().get(0);
    println!("with the broker hanging behind row {passed}: slowest ALTER TABLE {worst:?}");
    assert!(passed < i64::try_from(ROWS).unwrap(), "there was nothing left to hang");
    assert!(worst < Duration::from_secs(2), "{worst:?}");
    broker.thaw().unwrap();
    faithful(&database, consumer).await;
    replica.stop().await;
    broker.stop().await.unwrap();
}

// Guarantee: failures.advance
#[tokio::test(flavor = "multi_thread")]
async fn an_advance_that_fails_leaves_the_cursor_where_it_was_and_the_rows_come_again() {
    const ROWS: usize = 10;
    let (database, broker) = (database().await, broker().await);
    let owner = database.connect("postgres").await;
    Table::PLAIN.create(&owner).await.unwrap();
    let (servers, topic) = (broker.bootstrap_servers(), unique("refused"));
    broker.create_topic(&topic, 1, &[]).await.unwrap();
    let consumer = Consumer::start(&servers, &topic).await.unwrap();
    let relays = kafka_relay("bookings", &topic, "");
    let replica = Replica::start(&config(&database, "relay", Some(&servers), &relays), "r1");
    let insert = format!(
        "INSERT INTO public.bookings (customer, region, phone, payload) \
         SELECT 'c' || n, 'eu', '+4912345', 'x' FROM generate_series(1, {ROWS}) AS n"
    );
    owner.batch_execute(&insert).await.unwrap();
    eventually(PATIENCE, async || consumer.count() == ROWS).await;
    let place = "SELECT position_created_at::text, position_id FROM outbox.cursor";
    let advanced = async || {
        let row = owner.query_one(place, &[]).await.unwrap();
        (row.get::<_, Option<String>>(0), row.get::<_, Option<String>>(1))
    };
    eventually(PATIENCE, async || advanced().await.1 == Some(ROWS.to_string())).await;
    let before = advanced().await;
    let refuse = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE 'no'; END$$; \
                  CREATE TRIGGER refuse BEFORE UPDATE ON outbox.cursor FOR EACH ROW EXECUTE FUNCTION refuse()";
    owner.batch_execute(refuse).await.unwrap();
    owner.batch_execute(&insert).await.unwrap();
    // Sent, not advanced over, and sent again.
    eventually(PATIENCE * 2, async || consumer.count() >= 3 * ROWS).await;
    assert_eq!(advanced().await, before);
    owner.batch_execute("DROP TRIGGER refuse ON outbox.cursor").await.unwrap();
    eventually(PATIENCE * 2, async || advanced().await.1 == Some((2 * ROWS).to_string())).await;
    assert!(faithful(&database, consumer).await >= ROWS);
    replica.stop().await;
}

// Guarantee: failures.postgres
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
