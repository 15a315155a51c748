//! Long transactions, three replicas, kills, and a relay that does not wait for them: every row comes, and none that came is late.

use std::collections::BTreeSet;
use std::time::Duration;

use outbox_testkit::bookings::{self, Load, Table, Writers};
use rustix::process::Signal;

use super::{SWEPT, run};
use crate::support::{PATIENCE, Process, broker, database, eventually, kafka_relay, late_marks, toml, unique};

/// How often a replica is killed.
const KILLS: usize = 6;

// Guarantee: late.storm
#[tokio::test(flavor = "multi_thread")]
async fn storm_of_late_rows_with_kills_loses_none_and_takes_none_for_late_that_was_delivered() {
    let (database, broker, topic) = (database().await, broker().await, unique("late-storm"));
    let owner = database.connect("postgres").await;
    Table::PLAIN.create(&owner).await.unwrap();
    run(&owner, SWEPT).await;
    broker.create_topic(&topic, 2, &[]).await.unwrap();
    let servers = broker.bootstrap_servers();
    let relay = kafka_relay("late", &topic, "latency_window = \"5ms\"")
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
        tokio::time::sleep(Duration::from_millis(1_500)).await; // how long the storm lasts
        let replica = &mut replicas[kill % 3];
        replica.signal(Signal::KILL);
        replica.wait().await;
        *replica = Process::spawn(&text, &["run", "--replica-id", &format!("k{kill}")]);
    }
    let written = writers.stop().await.unwrap();
    let committed = bookings::committed(&owner).await.unwrap();
    written.agrees_with(&committed).unwrap();
    let wanted: BTreeSet<String> =
        owner.query("SELECT id::text FROM bookings", &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    let arrived = async || late_marks(&servers, &topic).await;
    eventually(PATIENCE * 6, async || arrived().await.len() >= wanted.len()).await;
    let marks = arrived().await;
    assert_eq!(marks.keys().cloned().collect::<BTreeSet<_>>(), wanted, "each committed row, and no other");
    let late = marks.values().filter(|marks| marks.contains(&true)).count();
    let both: Vec<_> = marks.iter().filter(|(_, marks)| marks.len() > 1).map(|(id, _)| id).collect();
    println!("{} rows, {late} of them late", wanted.len());
    assert!(late > 10, "the storm had {late} late rows");
    assert_eq!(both, Vec::<&String>::new(), "delivered, and late after that");
}
