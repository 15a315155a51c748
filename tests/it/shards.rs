//! Shards: several cursors share a relay's rows by key, and rows of one key stay in order, whatever ends a holder, and when
//! their number changes.

use std::collections::BTreeMap;
use std::time::Duration;

use outbox_testkit::bookings::{self, Load, Table, Writers};
use outbox_testkit::consumer::{Consumer, Received};
use outbox_testkit::delivery::{Delivery, Report, check};
use tokio_postgres::Client;

use crate::support::{
    Database, PATIENCE, Process, broker, database, eventually, kafka_relay, outbox_relay, toml, unique,
};

mod change;
mod delivery;
mod guarantees;
mod idle;
mod index;
mod orders;
mod plans;
mod refused;

/// A table whose writers write, a topic of three partitions, and who reads it.
pub struct Stage {
    pub database: Database,
    pub owner: Client,
    pub consumer: Consumer,
    topic: String,
    servers: String,
}

impl Stage {
    pub async fn new(table: Table) -> Self {
        let (database, broker) = (database().await, broker().await);
        let owner = database.connect("postgres").await;
        table.create(&owner).await.unwrap();
        let (topic, servers) = (unique("shards"), broker.bootstrap_servers());
        broker.create_topic(&topic, 3, &[]).await.unwrap();
        let consumer = Consumer::start(&servers, &topic).await.unwrap();
        Self { database, owner, consumer, topic, servers }
    }

    /// The configuration of a role for so many shards.
    pub fn toml(&self, role: &str, shards: u32) -> String {
        // A busy machine may take longer than a turn's usual 5 s; what is cut then comes again, and proves nothing here.
        let relay = kafka_relay("events", &self.topic, &format!("shards = {shards}"));
        let relay = format!("{relay}[relay.turn]\ndeadline = \"60s\"\n");
        toml(&self.database, role, Some(&self.servers), &relay)
    }

    /// A replica with so many shards.
    pub fn replica(&self, name: &str, shards: u32) -> Process {
        Process::spawn(&self.toml("relay", shards), &["run", "--replica-id", name])
    }

    /// Makes the indexes of these numbers of shards, as an owner does.
    pub async fn indexes(&self, numbers: &[u32]) {
        for shards in numbers {
            let (code, out, log) = outbox_relay(&self.toml("postgres", *shards), &["migrate", "up", "--indexes"]).await;
            assert_eq!(code, Some(0), "{out} {log}");
        }
    }

    pub async fn load(&self, rows_per_second: Option<f64>) -> Writers {
        let load =
            Load { rows_per_second, payload: 100..=2_000, longest_pause: Duration::from_millis(50), ..Load::default() };
        Writers::start(&self.database.url("app"), load).await.unwrap()
    }

    /// Names and positions of the cursors.
    pub async fn cursors(&self) -> Vec<(String, Option<String>)> {
        let sql = "SELECT name, position_created_at::text FROM outbox.cursor ORDER BY name";
        self.owner.query(sql, &[]).await.unwrap().iter().map(|row| (row.get(0), row.get(1))).collect()
    }

    /// Waits until this many more rows have arrived.
    pub async fn goes_on(&self, rows: usize) {
        let before = self.consumer.count();
        eventually(PATIENCE * 6, async || self.consumer.count() >= before + rows).await;
    }

    /// Waits for everything, and compares, key by key.
    pub async fn settle(self, writers: Writers) -> (usize, Report) {
        let written = writers.stop().await.unwrap();
        let committed = bookings::committed(&self.owner).await.unwrap();
        written.agrees_with(&committed).unwrap();
        eventually(PATIENCE * 12, async || {
            let (streams, gaps) = self.consumer.look(|received| (by_key(received), received.gaps.clone()));
            check(&committed, &streams, &gaps).distinct == committed.len()
        })
        .await;
        self.consumer.catch_up(PATIENCE).await.unwrap();
        let received = self.consumer.stop().await.unwrap();
        assert!(received.gaps.is_empty());
        let report = check(&committed, &by_key(&received), &received.gaps);
        (committed.len(), report)
    }
}

/// What arrived of each key, in the order of its arrival: a key has one partition.
fn by_key(received: &Received) -> BTreeMap<i32, Vec<Delivery>> {
    let mut numbers: BTreeMap<Vec<u8>, i32> = BTreeMap::new();
    let mut streams: BTreeMap<i32, Vec<Delivery>> = BTreeMap::new();
    for record in received.partitions.values().flatten() {
        let next = i32::try_from(numbers.len()).unwrap();
        let number = *numbers.entry(record.key.clone().unwrap()).or_insert(next);
        let delivery = Delivery { id: record.id.clone(), created_at: record.created_at };
        streams.entry(number).or_default().push(delivery);
    }
    streams
}

/// Nothing is lost, and each key's rows came in their order; in one piece where nothing was killed.
#[track_caller]
fn assert_faithful(report: &Report, killed: bool) {
    assert!(report.is_faithful() && report.holes.is_empty() && report.strayed.is_empty(), "{report:?}");
    assert!(killed || report.duplicates() == 0, "{report:?}");
}
