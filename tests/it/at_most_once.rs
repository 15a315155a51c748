//! `guarantee = "at_most_once"`: nothing is ever sent twice, order is kept, and what may be missing is listed.

mod commit;
mod exit;
mod kills;
mod operators;
mod outcomes;
mod same_id;
mod servers;

use std::collections::BTreeSet;

use tokio_postgres::Client;

use crate::support::receiver::Receiver;
use crate::support::{
    CLOCK, Database, PATIENCE, Process, bookings, broker, database, eventually, ids, kafka_relay, outbox_relay, toml,
    unique,
};

/// Who gets the rows.
enum Target {
    Http(Box<Receiver>),
    Kafka { servers: String, topic: String },
}

/// A table, a target, and the text of a configuration whose relay is named `r`.
struct Stage {
    database: Database,
    owner: Client,
    target: Target,
    toml: String,
}

impl Stage {
    /// `more` is added below `[[relay]]`.
    async fn http(more: &str) -> Self {
        let (database, receiver) = (database().await, Receiver::start());
        let owner = bookings(&database, CLOCK).await;
        let toml = toml(&database, "relay", None, &receiver.relay("r", &guarantee(more)));
        Self { database, owner, target: Target::Http(Box::new(receiver)), toml }
    }

    async fn kafka(more: &str) -> Self {
        let (database, broker, topic) = (database().await, broker().await, unique("at-most-once"));
        let owner = bookings(&database, CLOCK).await;
        broker.create_topic(&topic, 1, &[]).await.unwrap();
        let servers = broker.bootstrap_servers();
        let toml = toml(&database, "relay", Some(&servers), &kafka_relay("r", &topic, &guarantee(more)));
        Self { database, owner, target: Target::Kafka { servers, topic }, toml }
    }

    fn receiver(&self) -> &Receiver {
        match &self.target {
            Target::Http(receiver) => receiver,
            Target::Kafka { .. } => panic!("this stage has no HTTP receiver"),
        }
    }

    fn replica(&self, name: &str) -> Process {
        Process::spawn(&self.toml, &["run", "--replica-id", name])
    }

    async fn insert(&self, rows: i32) {
        let sql = "INSERT INTO bookings (payload) SELECT 'p' FROM generate_series(1, $1)";
        self.owner.execute(sql, &[&rows]).await.unwrap();
    }

    /// The ids of all that has reached the target, accepted or not, in order.
    async fn arrived(&self) -> Vec<i64> {
        let number = |id: &str| id.parse().unwrap();
        match &self.target {
            Target::Http(receiver) => {
                receiver.requests().iter().map(|request| number(request.key.strip_prefix("r/").unwrap())).collect()
            }
            Target::Kafka { servers, topic } => ids(servers, topic).await.iter().map(|id| number(id)).collect(),
        }
    }

    /// The keys that `request list --unknown` names.
    async fn unknown(&self) -> BTreeSet<i64> {
        let (code, out, log) = outbox_relay(&self.toml, &["request", "list", "--unknown", "-o", "json"]).await;
        assert_eq!(code, Some(0), "{log}");
        let document: serde_json::Value = serde_json::from_str(&out).unwrap();
        let requests = document["requests"].as_array().unwrap();
        assert!(requests.iter().all(|request| request["relay"] == "r" && request["status"] == "unknown"), "{document}");
        requests.iter().map(|request| request["key"][0].as_str().unwrap().parse().unwrap()).collect()
    }

    /// Where the cursor stands, and whether rows are in flight; 0 is before every row.
    async fn position(&self) -> (i64, bool) {
        let sql = "SELECT COALESCE(position_id::bigint, 0), token IS NOT NULL FROM outbox.cursor WHERE name = 'r'";
        self.owner.query_opt(sql, &[]).await.unwrap().map_or((0, false), |row| (row.get(0), row.get(1)))
    }

    /// Waits until the cursor stands at this row, with nothing in flight.
    async fn settled(&self, last: i64) {
        eventually(PATIENCE * 6, async || self.position().await == (last, false)).await;
    }

    /// Of `rows` rows none has arrived twice or out of order, and what is missing is listed; gives how many are missing
    /// and how many are listed.
    async fn holds(&self, rows: i64) -> (usize, usize) {
        let arrived = self.arrived().await;
        assert!(arrived.windows(2).all(|pair| pair[0] < pair[1]), "twice or out of order: {arrived:?}");
        self.holds_but_for_late_rows(rows).await
    }

    /// The same, but a row that a frozen holder had in its hands may come late; then it is listed.
    async fn holds_but_for_late_rows(&self, rows: i64) -> (usize, usize) {
        let (arrived, unknown) = (self.arrived().await, self.unknown().await);
        assert_eq!(arrived.iter().collect::<BTreeSet<_>>().len(), arrived.len(), "twice: {arrived:?}");
        let mut highest = 0;
        for id in &arrived {
            assert!(*id > highest || unknown.contains(id), "{id} after {highest}, and not listed: {arrived:?}");
            highest = highest.max(*id);
        }
        let missing: BTreeSet<i64> = (1..=rows).filter(|id| !arrived.contains(id)).collect();
        assert!(missing.is_subset(&unknown), "missing and not listed: {:?}", missing.difference(&unknown));
        assert!(arrived.iter().all(|id| (1..=rows).contains(id)), "{arrived:?}");
        (missing.len(), unknown.len())
    }
}

fn guarantee(more: &str) -> String {
    format!("guarantee = \"at_most_once\"\n{more}")
}

// Guarantee: at-most-once.without-faults
#[tokio::test(flavor = "multi_thread")]
async fn without_faults_every_row_arrives_once_and_in_order_from_three_replicas() {
    for stage in [Stage::http("").await, Stage::http("[relay.turn]\nrows = 7").await, Stage::kafka("").await] {
        let mut replicas: Vec<Process> = (0..3).map(|n| stage.replica(&format!("r{n}"))).collect();
        for _ in 0..6 {
            stage.insert(50).await;
        }
        stage.settled(300).await;
        assert_eq!(stage.arrived().await, (1..=300).collect::<Vec<_>>());
        assert_eq!(stage.unknown().await, BTreeSet::new(), "nothing is unknown that did not fail");
        for replica in &mut replicas {
            replica.signal(rustix::process::Signal::TERM);
            assert_eq!(replica.wait().await, Some(0), "{}", replica.log());
        }
    }
}
