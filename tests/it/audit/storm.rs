//! Three replicas, kills, and a relay that does not wait for open transactions: each row comes, and none that came is taken for late.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use outbox_testkit::bookings::{self, Load, Table, Writers};
use rustix::process::Signal;

use super::{LOOKS, let_slices_be_due, let_slices_end, run};
use crate::support::{PATIENCE, Process, broker, database, eventually, kafka_relay, records, toml, unique};

/// How often a replica is killed.
const KILLS: usize = 6;

// Guarantee: audit.storm
#[tokio::test(flavor = "multi_thread")]
async fn storm_with_kills_loses_no_row_and_takes_none_for_late_that_was_delivered() {
    let (database, broker, topic) = (database().await, broker().await, unique("audit-storm"));
    let owner = database.connect("postgres").await;
    Table::PLAIN.create(&owner).await.unwrap();
    broker.create_topic(&topic, 2, &[]).await.unwrap();
    let servers = broker.bootstrap_servers();
    let relay = kafka_relay("late", &topic, "latency_window = \"250ms\"")
        .replace("[relay.sink", "horizon = \"window\"\n[relay.sink");
    let text = toml(&database, "relay", Some(&servers), &relay);
    let mut replicas: Vec<Process> =
        (0..3).map(|n| Process::spawn(&text, &["run", "--replica-id", &format!("r{n}")])).collect();
    let load = Load {
        writers: 8,
        rows_per_second: Some(400.0),
        payload: 10..=200,
        longest_pause: Duration::from_millis(300),
        ..Load::default()
    };
    let writers = Writers::start(&database.url("app"), load).await.unwrap();
    for kill in 0..KILLS {
        let until = Instant::now() + Duration::from_millis(1_500);
        while Instant::now() < until {
            // Short slices, as under a load of thousands of rows a second.
            let_slices_end(&owner).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let replica = &mut replicas[kill % 3];
        replica.signal(Signal::KILL);
        replica.wait().await;
        *replica = Process::spawn(&text, &["run", "--replica-id", &format!("k{kill}")]);
    }
    let written = writers.stop().await.unwrap();
    let committed = bookings::committed(&owner).await.unwrap();
    written.agrees_with(&committed).unwrap();
    // A row behind all others ends the last slice.
    let_slices_end(&owner).await;
    run(&owner, "INSERT INTO public.bookings (customer, region, phone, payload) VALUES ('c', 'eu', '1', 'p')").await;
    let open = "SELECT count(audit) FROM outbox.cursor";
    eventually(PATIENCE, async || owner.query_one(open, &[]).await.unwrap().get::<_, i64>(0) == 0).await;
    let wanted: BTreeSet<String> =
        owner.query("SELECT id::text FROM bookings", &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    let arrived = async || {
        let mut marks: BTreeMap<String, BTreeSet<bool>> = BTreeMap::new();
        for record in records(&servers, &topic).await {
            marks.entry(record.id().to_owned()).or_default().insert(record.header("late").is_some());
        }
        marks
    };
    let slices: i64 = owner.query_one("SELECT count(*) FROM outbox.audit_slice", &[]).await.unwrap().get(0);
    let missing = wanted.len() - arrived().await.len();
    let_slices_be_due(&owner).await;
    let left = "SELECT count(*) FROM outbox.audit_slice WHERE checks = 0";
    eventually(LOOKS * 6, async || owner.query_one(left, &[]).await.unwrap().get::<_, i64>(0) == 0).await;
    println!("{} rows in {slices} slices, {missing} of them passed by the relay", wanted.len());
    eventually(PATIENCE * 6, async || arrived().await.len() >= wanted.len()).await;
    let marks = arrived().await;
    assert_eq!(marks.keys().cloned().collect::<BTreeSet<_>>(), wanted, "each committed row, and no other");
    let both: Vec<_> = marks.iter().filter(|(_, marks)| marks.len() > 1).map(|(id, _)| id).collect();
    assert!(missing > 0, "the storm passed no row");
    assert_eq!(both, Vec::<&String>::new(), "delivered, and late after that");
}
