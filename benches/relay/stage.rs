//! The servers, the tables and the topics that everything is measured with.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::ensure;
use outbox_relay::demo::kafka::{RealBroker, delete_topic};
use outbox_relay::demo::postgres::{Options, Postgres};
use outbox_relay::migrate;
use outbox_relay::sink::kafka::{Cluster, ClusterConfig};
use rdkafka::consumer::{BaseConsumer, Consumer};
use tokio_postgres::Client;

use super::payload::Payload;

/// The table that single rows are written to while relays run.
pub const LIVE: &str = "public.bookings_live";
/// A table that is never written to.
pub const QUIET: &str = "public.bookings_quiet";

const DATABASE: &str = "postgres";
const PATIENCE: Duration = Duration::from_secs(10);

/// See the module.
#[derive(Debug)]
pub struct Stage {
    postgres: Postgres,
    broker: RealBroker,
    topics: AtomicU32,
}

impl Stage {
    /// Starts PostgreSQL, with fsync, and Apache Kafka; makes schema, role and tables.
    pub async fn start() -> anyhow::Result<Self> {
        // Checkpoints and vacuums of what was filled before would be counted as somebody's work.
        let settings = [("max_wal_size", "8GB"), ("checkpoint_timeout", "1h"), ("autovacuum", "off")];
        let settings = settings.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let (postgres, broker) = tokio::try_join!(
            Postgres::start(Options { fsync: true, settings, ..Options::default() }),
            RealBroker::start()
        )?;
        let stage = Self { postgres, broker, topics: AtomicU32::new(0) };
        let mut owner = stage.owner().await?;
        owner.batch_execute("CREATE ROLE relay LOGIN").await?;
        migrate::up(&mut owner).await?;
        let tables = [Payload::Text.table(), Payload::Row.table(), LIVE, QUIET];
        for table in tables {
            let sql = format!(
                "CREATE TABLE {table} (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, \
                 created_at timestamptz NOT NULL DEFAULT clock_timestamp(), customer text NOT NULL, payload text NOT NULL); \
                 CREATE INDEX ON {table} (created_at, id)"
            );
            owner.batch_execute(&sql).await?;
        }
        let granted: Vec<_> = tables.iter().filter_map(|table| table.split_once('.')).collect();
        migrate::grant(&owner, &migrate::relay_grants("relay", &granted)).await?;
        Ok(stage)
    }

    /// Ends both servers and removes everything.
    pub async fn stop(self) -> anyhow::Result<()> {
        self.postgres.stop().await?;
        self.broker.stop().await
    }

    /// A connection as the superuser.
    pub async fn owner(&self) -> anyhow::Result<Client> {
        Ok(self.postgres.connect("postgres", DATABASE).await?)
    }

    /// A connection as the relay's role.
    pub async fn reader(&self) -> anyhow::Result<Client> {
        Ok(self.postgres.connect("relay", DATABASE).await?)
    }

    /// The relay's connection URL.
    pub fn url(&self) -> String {
        self.postgres.url("relay", DATABASE)
    }

    /// The broker's address.
    pub fn servers(&self) -> String {
        self.broker.bootstrap_servers()
    }

    /// The cluster as the relay itself would use it.
    pub fn cluster(&self) -> Cluster {
        let config = ClusterConfig { bootstrap_servers: self.servers(), properties: std::collections::BTreeMap::new() };
        Cluster::new(config)
    }

    /// Fills a table with rows of distinct instants and 50 customers.
    pub async fn fill(&self, payload: Payload, rows: u64) -> anyhow::Result<()> {
        let owner = self.owner().await?;
        let sql = format!(
            "INSERT INTO {} (customer, payload) SELECT 'c' || i % 50, rpad(i::text, $2, 'x') FROM generate_series(1, $1::bigint) i",
            payload.table()
        );
        owner.execute(&sql, &[&i64::try_from(rows)?, &payload.column_bytes()]).await?;
        owner.batch_execute(&format!("VACUUM ANALYZE {}", payload.table())).await?;
        owner.batch_execute("CHECKPOINT").await?;
        Ok(())
    }

    /// How many bytes a record's value has, on average of the newest rows.
    pub async fn payload_bytes(&self, payload: Payload) -> anyhow::Result<usize> {
        let sql = format!(
            "SELECT avg(octet_length(v))::int FROM (SELECT {} AS v FROM {} t ORDER BY created_at DESC, id DESC LIMIT 1000) x",
            payload.sql(),
            payload.table()
        );
        let bytes: i32 = self.owner().await?.query_one(&sql, &[]).await?.get(0);
        Ok(usize::try_from(bytes)?)
    }

    /// A new topic of one partition.
    pub async fn topic(&self) -> anyhow::Result<String> {
        let name = format!("bench-{}", self.topics.fetch_add(1, Ordering::Relaxed));
        self.broker.create_topic(&name, 1, &[]).await?;
        Ok(name)
    }

    /// Checks that a topic holds exactly this many records, and removes it.
    pub async fn close(&self, topic: &str, records: u64) -> anyhow::Result<()> {
        let held = self.records(topic)?;
        ensure!(held == records, "topic {topic} holds {held} records, expected {records}");
        delete_topic(&self.servers(), topic).await
    }

    /// How many records a topic of one partition holds, by its watermarks.
    pub fn records(&self, topic: &str) -> anyhow::Result<u64> {
        let consumer: BaseConsumer = self.cluster().client_config().create()?;
        let (low, high) = consumer.fetch_watermarks(topic, 0, PATIENCE)?;
        Ok(u64::try_from(high - low)?)
    }
}
