//! A topic with everything that a consumer must expect: copies after a crash of the relay, a dead letter that was sent again,
//! a late row.

use std::collections::BTreeSet;

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, AlterConfig, ResourceSpecifier};
use rdkafka::client::DefaultClientContext;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{FutureProducer, FutureRecord};
use rustix::process::Signal;
use tokio_postgres::Client;

use crate::support::outside::json;
use crate::support::{
    CLOCK, Database, PATIENCE, Process, Record, bookings, broker, database, eventually, kafka_relay, outbox_relay,
    records, toml, unique,
};

/// The row that becomes a dead letter, and is sent again at the end.
pub const REDRIVEN: i64 = 40;
/// The row that is committed behind the position.
pub const LATE: i64 = 301;
/// The relay is killed when it has sent this row and has not advanced over it.
const KILLED: i64 = 200;
const PARTITIONS: i32 = 2;

/// See the module. `bookings` in the database is the source; consumers have their tables beside it.
pub struct Topic {
    pub database: Database,
    pub owner: Client,
    pub name: String,
    pub records: Vec<Record>,
    _relay: Process,
}

impl Topic {
    pub async fn start() -> Self {
        let (database, name) = (database().await, unique("consumed"));
        let owner = bookings(&database, CLOCK).await;
        broker().await.create_topic(&name, PARTITIONS, &[("max.message.bytes", "2000")]).await.unwrap();
        let fill = format!(
            "INSERT INTO bookings (customer, payload) \
             SELECT 'c' || n % 5, repeat('x', CASE n WHEN {REDRIVEN} THEN 5000 ELSE 5 END) FROM generate_series(1, 300) AS n"
        );
        owner.batch_execute(&fill).await.unwrap();
        let relays = kafka_relay("bookings", &name, "on_poison = \"dead_letter\"");
        let config = toml(&database, "relay", Some(&servers().await), &relays);
        crash(&owner, &database, &config, &name).await;

        raise_limit(&name).await;
        let relay = Process::spawn(&config, &["run"]);
        let at_end = "SELECT count(*) FROM outbox.cursor WHERE position_id = '300'";
        eventually(PATIENCE * 2, async || count(&owner, at_end).await == 1).await;
        redrive(&config).await;
        eventually(PATIENCE, async || is_there(&name, &REDRIVEN.to_string()).await).await;
        send_late(&owner, &name).await;
        let last = "INSERT INTO bookings (customer) SELECT 'last' || n FROM generate_series(1, 12) AS n";
        owner.batch_execute(last).await.unwrap();
        eventually(PATIENCE, async || is_there(&name, &(LATE + 12).to_string()).await).await;
        let records = records(&servers().await, &name).await;
        let topic = Self { database, owner, name, records, _relay: relay };
        topic.is_as_told();
        topic
    }

    /// Copies that are in the topic itself, whatever consumers make of it.
    pub fn copies(&self) -> usize {
        self.records.len() - self.records.iter().map(Record::id).collect::<BTreeSet<_>>().len()
    }

    /// The ids that its consumers find at the end of a partition: what stands before one has been dealt with when it has.
    pub fn last(&self) -> Vec<i64> {
        let of = |partition| self.records.iter().rfind(|record| record.partition == partition).unwrap();
        (0..PARTITIONS).map(|partition| of(partition).id().parse().unwrap()).collect()
    }

    fn is_as_told(&self) {
        assert!(self.copies() > 0, "a crash that repeats nothing proves nothing");
        let with = |header: &str| -> Vec<&str> {
            self.records.iter().filter(|record| record.header(header) == Some("true")).map(Record::id).collect()
        };
        assert_eq!((with("replayed"), with("late")), (vec!["40"], vec!["301"]));
        let ids: BTreeSet<i64> = self.records.iter().map(|record| record.id().parse().unwrap()).collect();
        assert_eq!(ids, (1..=LATE + 12).collect(), "every row is in the topic");
        assert!(self.records.iter().all(|record| record.header("relay") == Some("bookings")));
        assert!(self.last().iter().all(|id| *id > LATE), "{:?}", self.last());
    }
}

/// The shared broker's address.
pub async fn servers() -> String {
    broker().await.bootstrap_servers()
}

/// The number that a query answers.
pub async fn count(owner: &Client, sql: &str) -> i64 {
    owner.query_one(sql, &[]).await.unwrap().get(0)
}

async fn is_there(topic: &str, id: &str) -> bool {
    records(&servers().await, topic).await.iter().any(|record| record.id() == id)
}

/// A relay is killed between the acknowledgement of its records and the commit of its position.
async fn crash(owner: &Client, database: &Database, config: &str, topic: &str) {
    let gate = format!(
        "CREATE FUNCTION public.wait() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_xact_lock(11); RETURN NEW; END'; \
         CREATE TRIGGER wait AFTER UPDATE ON outbox.cursor FOR EACH ROW WHEN (NEW.position_id::bigint >= {KILLED}) \
         EXECUTE FUNCTION public.wait(); SELECT pg_advisory_lock(11)"
    );
    owner.batch_execute(&gate).await.unwrap();
    let mut relay = Process::spawn(config, &["run"]);
    let waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 11 AND NOT granted \
                 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    eventually(PATIENCE * 2, async || count(owner, waits).await == 1).await;
    relay.signal(Signal::KILL);
    relay.wait().await;
    assert!(is_there(topic, &KILLED.to_string()).await, "acknowledged before the position moves");
    let sessions = format!(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
         WHERE application_name LIKE 'outbox-relay/%' AND datname = '{}'",
        database.name
    );
    eventually(PATIENCE, async || count(owner, &sessions).await == 0).await;
    owner.batch_execute("SELECT pg_advisory_unlock(11)").await.unwrap();
    let passed = format!("SELECT count(*) FROM outbox.cursor WHERE position_id::bigint >= {KILLED}");
    assert_eq!(count(owner, &passed).await, 0, "the crash came before the advance");
}

async fn raise_limit(topic: &str) {
    let admin: AdminClient<DefaultClientContext> =
        ClientConfig::new().set("bootstrap.servers", servers().await).create().unwrap();
    let change = AlterConfig::new(ResourceSpecifier::Topic(topic)).set("max.message.bytes", "1000000");
    let done = admin.alter_configs([&change], &AdminOptions::new()).await.unwrap();
    assert!(done.iter().all(Result::is_ok), "{done:?}");
}

async fn redrive(config: &str) {
    let (code, out, log) = outbox_relay(config, &["dead-letter", "list", "-o", "json"]).await;
    assert_eq!(code, Some(0), "{log}");
    let letters = json(&out)["dead_letters"].as_array().unwrap().clone();
    assert_eq!(letters.len(), 1, "{out}");
    let (code, _, log) =
        outbox_relay(config, &["dead-letter", "redrive", &letters[0]["id"].to_string(), "--yes"]).await;
    assert_eq!(code, Some(0), "{log}");
}

/// A row behind the position, and its record in the form that is reserved for it: no relay of this version sends it.
async fn send_late(owner: &Client, topic: &str) {
    let row = owner
        .query_one(
            "INSERT INTO bookings (created_at, customer) VALUES (now() - interval '1 hour', 'c1') \
             RETURNING id, to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')",
            &[],
        )
        .await
        .unwrap();
    assert_eq!(row.get::<_, i64>(0), LATE);
    let producer: FutureProducer = ClientConfig::new()
        .set("bootstrap.servers", servers().await)
        .set("partitioner", "murmur2_random")
        .create()
        .unwrap();
    let headers = [("id", "301"), ("created_at", row.get(1)), ("relay", "bookings"), ("late", "true")];
    let headers = headers.into_iter().fold(OwnedHeaders::new(), |headers, (key, value): (_, &str)| {
        headers.insert(Header { key, value: Some(value) })
    });
    let record: FutureRecord<'_, str, str> = FutureRecord::to(topic).key("c1").headers(headers);
    producer.send(record, PATIENCE).await.expect("acknowledged");
}
