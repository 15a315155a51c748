//! Three replicas under load, of which one is killed again and again, while the registry goes and comes.

use std::time::{Duration, Instant};

use outbox_testkit::bookings::{self as table, Load, Table, Writers};
use outbox_testkit::consumer::Consumer;
use outbox_testkit::delivery::{Verdict, check, verdict};
use rustix::process::Signal;

use super::*;
use crate::support::Process;
use crate::support::outside::line;

const LOAD: Duration = Duration::from_secs(12);
const KILLS: usize = 4;
const SCHEMA: &str =
    r#"{"type":"record","name":"Booking","fields":[{"name":"id","type":"long"},{"name":"payload","type":"string"}]}"#;

// Guarantee: delivery.schema-registry-kills
#[tokio::test(flavor = "multi_thread")]
async fn kills_and_a_registry_that_goes_and_comes_lose_nothing_and_keep_the_order() {
    let (database, mut registry) = (database().await, ScriptedRegistry::start().await.unwrap());
    let owner = database.connect("postgres").await;
    Table::PLAIN.create(&owner).await.unwrap();
    let topic = unique("sr-kills");
    broker().await.create_topic(&topic, 3, &[]).await.unwrap();
    registry.register(&format!("{topic}-value"), "AVRO", SCHEMA);
    let consumer = Consumer::start(&broker().await.bootstrap_servers(), &topic).await.unwrap();
    let sink = "payload = { columns = [\"id\", \"payload\"] }";
    let text =
        text(&database, &section(&registry.url(), "timeout = \"1s\""), &relay(&topic, "avro", ("", sink, ""))).await;
    let start = |n: usize| Process::spawn(&text, &["run", "--replica-id", &format!("r{n}")]);
    let mut replicas: Vec<Process> = (0..3).map(start).collect();
    let load = Load { writers: 8, rows_per_second: Some(80.0), payload: 100..=2_000, ..Load::default() };
    let writers = Writers::start(&database.url("app"), load).await.unwrap();
    let (begun, mut round) = (Instant::now(), 0);
    while begun.elapsed() < LOAD || round < KILLS {
        let before = consumer.count();
        eventually(PATIENCE * 4, async || consumer.count() > before + 20).await;
        let index = round % 3;
        if round % 2 == 0 {
            for other in (1..3).map(|next| &replicas[(index + next) % 3]) {
                line(other, "schema taken from the registry").await;
            }
        }
        replicas[index].signal(Signal::KILL);
        replicas[index].wait().await;
        // The one that starts without a registry waits; the others go on by what they know.
        if round % 2 == 0 {
            registry.down();
        } else {
            registry.up().await.unwrap();
        }
        replicas[index] = start(index);
        round += 1;
    }
    registry.up().await.unwrap();
    let written = writers.stop().await.unwrap();
    let committed = table::committed(&owner).await.unwrap();
    written.agrees_with(&committed).unwrap();
    let report = || {
        let (streams, gaps) = consumer.look(|received| (received.streams(), received.gaps.clone()));
        check(&committed, &streams, &gaps)
    };
    eventually(PATIENCE * 6, async || report().distinct == committed.len()).await;
    let report = report();
    println!("{} rows, {round} kills, {} sent again", committed.len(), report.duplicates());
    assert_eq!(verdict(&committed, &[&report], true), Verdict::Pass, "{report:?}");
}
