//! Several replicas share cursors: one holder at a time, and whatever ends a holder, nothing is lost, order is kept, and
//! only rows above the last committed position come again.

use std::time::{Duration, Instant};

use outbox_testkit::bookings::{self, Load, Table, Writers};
use outbox_testkit::consumer::Consumer;
use outbox_testkit::delivery::{Report, Verdict, check, verdict};
use rustix::process::Signal;
use tokio_postgres::Client;

use crate::support::{
    Database, PATIENCE, Process, Replica, broker, config, database, eventually, kafka_relay, toml, unique,
};

mod backlog;

/// A running stage: a table, a topic, a consumer, and the text of a configuration.
struct Stage {
    database: Database,
    owner: Client,
    consumer: Consumer,
    toml: String,
}

async fn stage() -> Stage {
    let (database, broker) = (database().await, broker().await);
    let owner = database.connect("postgres").await;
    Table::PLAIN.create(&owner).await.unwrap();
    let topic = unique("replicas");
    broker.create_topic(&topic, 3, &[]).await.unwrap();
    let servers = broker.bootstrap_servers();
    let consumer = Consumer::start(&servers, &topic).await.unwrap();
    let toml = toml(&database, "relay", Some(&servers), &kafka_relay("bookings", &topic, ""));
    Stage { database, owner, consumer, toml }
}

impl Stage {
    fn replica(&self, name: &str) -> Process {
        Process::spawn(&self.toml, &["run", "--replica-id", name])
    }

    /// The replica that advanced the cursor last.
    async fn holder(&self) -> Option<String> {
        let row = self.owner.query_opt("SELECT advanced_by FROM outbox.cursor", &[]).await.unwrap()?;
        row.get(0)
    }

    async fn load(&self, rows_per_second: f64) -> Writers {
        let pause = Duration::from_millis(50);
        let load = Load {
            rows_per_second: Some(rows_per_second),
            payload: 100..=2_000,
            longest_pause: pause,
            ..Load::default()
        };
        Writers::start(&self.database.url("app"), load).await.unwrap()
    }

    /// Waits for everything, and compares.
    async fn settle(self, writers: Writers) -> (usize, Report, Verdict) {
        let written = writers.stop().await.unwrap();
        let committed = bookings::committed(&self.owner).await.unwrap();
        written.agrees_with(&committed).unwrap();
        let distinct = |report: &Report| report.distinct;
        eventually(PATIENCE * 4, async || {
            let (streams, gaps) = self.consumer.look(|received| (received.streams(), received.gaps.clone()));
            distinct(&check(&committed, &streams, &gaps)) == committed.len()
        })
        .await;
        let received = self.consumer.stop().await.unwrap();
        let report = check(&committed, &received.streams(), &received.gaps);
        let verdict = verdict(&committed, &[&report], true);
        (committed.len(), report, verdict)
    }
}

/// Three replicas under load; `end` is done to the holder, several times.
async fn survives(end: Signal, restart: bool) {
    let stage = stage().await;
    let mut replicas: Vec<(String, Process)> =
        (0..3).map(|n| (format!("r{n}"), stage.replica(&format!("r{n}")))).collect();
    let writers = stage.load(1_000.0).await;
    // A row can have arrived before the advance over it is committed.
    eventually(PATIENCE * 2, async || stage.consumer.count() > 0 && stage.holder().await.is_some()).await;
    for round in 0..4 {
        let committed = writers.committed();
        eventually(PATIENCE * 2, async || writers.committed() > committed + 300).await;
        let holder = stage.holder().await.expect("a holder under load");
        let Some(index) = replicas.iter().position(|(name, _)| *name == holder) else { continue };
        let before = stage.consumer.count();
        let begun = Instant::now();
        replicas[index].1.signal(end);
        eventually(PATIENCE * 3, async || {
            stage.holder().await.is_some_and(|now| now != holder) && stage.consumer.count() > before
        })
        .await;
        println!("{end:?} of {holder}, round {round}: another replica delivers after {:?}", begun.elapsed());
        if end == Signal::STOP {
            replicas[index].1.signal(Signal::CONT);
        } else if restart {
            let code = replicas[index].1.wait().await;
            assert_eq!(code, if end == Signal::TERM { Some(0) } else { None }, "{}", replicas[index].1.log());
            let name = format!("r{index}-{round}");
            replicas[index] = (name.clone(), stage.replica(&name));
        }
    }
    let (rows, report, verdict) = stage.settle(writers).await;
    println!("{end:?}: {rows} rows, {} duplicates", report.duplicates());
    assert_eq!(verdict, Verdict::Pass, "{report:?}");
    if end == Signal::TERM {
        assert_eq!(report.duplicates(), 0, "a drained replica leaves nothing to send again");
    }
    assert!(report.strayed.is_empty(), "{report:?}");
}

// Guarantee: failures.sigkill
#[tokio::test(flavor = "multi_thread")]
async fn sigkill_of_the_holder_loses_nothing_and_keeps_order() {
    survives(Signal::KILL, true).await;
}

// Guarantee: failures.sigterm
#[tokio::test(flavor = "multi_thread")]
async fn sigterm_of_the_holder_loses_nothing_and_repeats_nothing() {
    survives(Signal::TERM, true).await;
}

// Guarantee: failures.sigstop
#[tokio::test(flavor = "multi_thread")]
async fn sigstop_of_the_holder_loses_nothing_and_first_deliveries_keep_order() {
    survives(Signal::STOP, false).await;
}

// Guarantee: delivery.once-without-faults
#[tokio::test(flavor = "multi_thread")]
async fn three_healthy_replicas_and_ten_cursors_repeat_nothing() {
    let (database, broker) = (database().await, broker().await);
    let owner = database.connect("postgres").await;
    Table::PLAIN.create(&owner).await.unwrap();
    let servers = broker.bootstrap_servers();
    let topics: Vec<String> = (0..10).map(|_| unique("ten")).collect();
    let mut relays = String::new();
    for topic in &topics {
        broker.create_topic(topic, 1, &[]).await.unwrap();
        relays.push_str(&kafka_relay(topic, topic, ""));
    }
    let config = config(&database, "relay", Some(&servers), &relays);
    let replicas: Vec<Replica> = (0..3).map(|n| Replica::start(&config, &format!("r{n}"))).collect();
    let load = Load { writers: 4, rows_per_second: Some(500.0), payload: 100..=500, ..Load::default() };
    let writers = Writers::start(&database.url("app"), load).await.unwrap();
    eventually(PATIENCE * 3, async || writers.committed() > 2_000).await;
    let written = writers.stop().await.unwrap();
    let committed = bookings::committed(&owner).await.unwrap();
    written.agrees_with(&committed).unwrap();
    for topic in &topics {
        let consumer = Consumer::start(&servers, topic).await.unwrap();
        eventually(PATIENCE * 3, async || consumer.count() >= committed.len()).await;
        let received = consumer.stop().await.unwrap();
        let report = check(&committed, &received.streams(), &received.gaps);
        assert_eq!(verdict(&committed, &[&report], false), Verdict::Pass, "{topic}: {report:?}");
    }
    for replica in replicas {
        replica.stop().await;
    }
}

// Guarantee: delivery.one-holder
#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_has_one_holder_at_any_time() {
    let (database, broker) = (database().await, broker().await);
    let owner = database.connect("postgres").await;
    Table::PLAIN.create(&owner).await.unwrap();
    let servers = broker.bootstrap_servers();
    let topic = unique("holders");
    broker.create_topic(&topic, 1, &[]).await.unwrap();
    let names: Vec<String> = (0..30).map(|n| format!("cursor{n}")).collect();
    let relays: String = names.iter().map(|name| kafka_relay(name, &topic, "")).collect();
    let config = config(&database, "relay", Some(&servers), &relays);
    let replicas: Vec<Replica> = (0..3).map(|n| Replica::start(&config, &format!("r{n}"))).collect();
    let writers = Writers::start(&database.url("app"), Load { payload: 100..=500, ..Load::default() }).await.unwrap();
    // Every lock on a cursor's row is a transaction of its own that holds its id; two for one row would both be listed
    // as the row's xmax and pid over time, but never at one look.
    let mut busiest = 0;
    for _ in 0..200 {
        let rows = owner.query("SELECT holder_pid FROM outbox.status WHERE holder_pid IS NOT NULL", &[]).await.unwrap();
        let pids: Vec<i32> = rows.iter().map(|row| row.get(0)).collect();
        let mut distinct = pids.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(pids.len(), distinct.len(), "a lock connection holds one cursor at a time");
        busiest = busiest.max(pids.len());
    }
    assert!(busiest <= 3 * 4, "three replicas of four slots hold at most twelve cursors at once, not {busiest}");
    let written = writers.stop().await.unwrap();
    eventually(PATIENCE * 6, async || {
        let behind = "SELECT count(*) FROM outbox.cursor WHERE position_id IS DISTINCT FROM \
                      (SELECT id::text FROM bookings ORDER BY created_at DESC, id DESC LIMIT 1)";
        owner.query_one(behind, &[]).await.unwrap().get::<_, i64>(0) == 0
    })
    .await;
    for replica in replicas {
        replica.stop().await;
    }
    let expected = written.rows as usize * names.len();
    let consumer = Consumer::start(&servers, &topic).await.unwrap();
    eventually(PATIENCE * 3, async || consumer.count() >= expected).await;
    assert_eq!(consumer.stop().await.unwrap().partitions.values().map(Vec::len).sum::<usize>(), expected);
}
