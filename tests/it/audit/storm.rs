//! Three replicas, kills, and rows that are dated back among others: each row comes, and none that came is taken for late.

use std::collections::BTreeSet;
use std::time::Duration;

use outbox_testkit::bookings::{Load, Table, Writers};
use rustix::process::Signal;

use super::{LOOKS, is_open, let_slices_be_due, let_slices_end, run};
use crate::support::{PATIENCE, Process, broker, database, eventually, kafka_relay, late_marks, toml, unique};

/// How often a replica is killed.
const KILLS: usize = 6;
/// Slices that are let end before each kill, and each so often a row is dated back: in a slice there are never more than can be named.
const STEPS: usize = 24;
const EACH: usize = 4;

// Guarantee: audit.storm
#[tokio::test(flavor = "multi_thread")]
async fn storm_with_kills_loses_no_row_and_takes_none_for_late_that_was_delivered() {
    let (database, broker, topic) = (database().await, broker().await, unique("audit-storm"));
    let owner = database.connect("postgres").await;
    Table::PLAIN.create(&owner).await.unwrap();
    broker.create_topic(&topic, 2, &[]).await.unwrap();
    let servers = broker.bootstrap_servers();
    let text = toml(&database, "relay", Some(&servers), &kafka_relay("late", &topic, ""));
    let mut replicas: Vec<Process> =
        (0..3).map(|n| Process::spawn(&text, &["run", "--replica-id", &format!("r{n}")])).collect();
    let load = Load {
        writers: 8,
        rows_per_second: Some(400.0),
        payload: 10..=200,
        longest_pause: Duration::from_millis(100),
        ..Load::default()
    };
    // The first turn passes rows that are in no slice: it begins before every row.
    let plain = "INSERT INTO public.bookings (customer, region, phone, payload) VALUES ('c', 'eu', '1', 'p')";
    eventually(PATIENCE, async || {
        run(&owner, plain).await;
        is_open(&owner).await
    })
    .await;
    let writers = Writers::start(&database.url("app"), load).await.unwrap();
    let insert = "INSERT INTO public.bookings (created_at, customer, region, phone, payload) \
                  VALUES (clock_timestamp() - interval '1 second', 'late', 'eu', '1', 'p')";
    for kill in 0..KILLS {
        for step in 0..STEPS {
            // Short slices, as under a load of thousands of rows a second.
            let_slices_end(&owner).await;
            // Dated back by less than all of it has taken so far.
            if kill > 0 && step % EACH == 0 {
                run(&owner, insert).await;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let replica = &mut replicas[kill % 3];
        replica.signal(Signal::KILL);
        replica.wait().await;
        *replica = Process::spawn(&text, &["run", "--replica-id", &format!("k{kill}")]);
    }
    writers.stop().await.unwrap();
    // A row behind all others ends the last slice.
    eventually(PATIENCE, async || {
        let_slices_end(&owner).await;
        run(&owner, plain).await;
        !is_open(&owner).await
    })
    .await;
    let wanted: BTreeSet<String> =
        owner.query("SELECT id::text FROM bookings", &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    let arrived = async || late_marks(&servers, &topic).await;
    let slices: i64 = owner.query_one("SELECT count(*) FROM outbox.audit_slice", &[]).await.unwrap().get(0);
    let missing = wanted.len() - arrived().await.len();
    let_slices_be_due(&owner).await;
    let left = "SELECT count(*) FROM outbox.audit_slice WHERE checks = 0";
    eventually(LOOKS * 9, async || owner.query_one(left, &[]).await.unwrap().get::<_, i64>(0) == 0).await;
    println!("{} rows in {slices} slices, {missing} of them passed by the relay", wanted.len());
    eventually(PATIENCE * 6, async || arrived().await.len() >= wanted.len()).await;
    let marks = arrived().await;
    assert_eq!(marks.keys().cloned().collect::<BTreeSet<_>>(), wanted, "each committed row, and no other");
    let both: Vec<_> = marks.iter().filter(|(_, marks)| marks.len() > 1).map(|(id, _)| id).collect();
    assert!(missing > 0, "the storm passed no row");
    assert_eq!(both, Vec::<&String>::new(), "delivered, and late after that");
}
