//! The servers, the tables and the topics that everything is measured with.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use outbox_relay::migrate;
use outbox_relay::sink::kafka::{Cluster, ClusterConfig};
use outbox_testkit::kafka::{BrokerOptions, Java, Listener, RealBroker, delete_topic};
use outbox_testkit::postgres::{Options, Postgres, login};
use rdkafka::consumer::{BaseConsumer, Consumer};
use tokio_postgres::Client;

use super::payload::Payload;
use super::proxy::Proxy;

/// The table that single rows are written to while relays run.
pub const LIVE: &str = "public.bookings_live";
/// A table that is never written to.
pub const QUIET: &str = "public.bookings_quiet";

const DATABASE: &str = "postgres";
const PATIENCE: Duration = Duration::from_secs(10);
/// The broker's listener behind a proxy.
const FAR: &str = "far";
/// Checkpoints and vacuums of what was filled before would be counted as somebody's work.
const SETTINGS: [(&str, &str); 7] = [
    ("shared_buffers", "512MB"),
    ("max_wal_size", "16GB"),
    ("checkpoint_timeout", "1h"),
    ("autovacuum", "off"),
    ("max_connections", "200"),
    ("maintenance_work_mem", "256MB"),
    ("shared_preload_libraries", "pg_stat_statements"),
];

/// See the module.
#[derive(Debug)]
pub struct Stage {
    postgres: Postgres,
    broker: RealBroker,
    topics: AtomicU32,
    /// Before PostgreSQL, and before the broker.
    proxies: [Proxy; 2],
}

/// How a relay reaches the servers.
#[derive(Clone, Debug)]
pub struct Way {
    /// The relay's connection URL.
    pub url: String,
    /// The broker's address.
    pub servers: String,
}

impl Stage {
    /// Starts PostgreSQL, with fsync, and Apache Kafka; makes schema, role and tables.
    pub async fn start() -> anyhow::Result<Self> {
        let settings = SETTINGS.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let mut proxies = [Proxy::bind()?, Proxy::bind()?];
        let far = Listener {
            name: FAR.into(),
            protocol: "PLAINTEXT",
            advertised: Some(proxies[1].port()),
            settings: Vec::new(),
        };
        let far = BrokerOptions { java: Java::Lasting, listeners: vec![far], ..BrokerOptions::default() };
        let (postgres, broker) = tokio::try_join!(
            Postgres::start(Options { fsync: true, settings, ..Options::default() }),
            RealBroker::start_with(&far)
        )?;
        proxies[0].forward(([127, 0, 0, 1], postgres.port()).into());
        proxies[1].forward(broker.listener(FAR).context("no further listener")?.parse()?);
        let stage = Self { postgres, broker, topics: AtomicU32::new(0), proxies };
        let mut owner = stage.owner().await?;
        // With pg_walinspect the WAL is counted by who wrote it: without it nothing could be said of idle relays.
        owner
            .batch_execute(&format!(
                "{}; CREATE EXTENSION pg_walinspect; CREATE EXTENSION pg_stat_statements",
                login("relay")
            ))
            .await?;
        migrate::up(&mut owner).await?;
        for table in Payload::ALL.map(Payload::table).into_iter().chain([LIVE, QUIET]) {
            stage.table(table).await?;
        }
        Ok(stage)
    }

    /// Makes an empty table that a relay may read.
    pub async fn table(&self, table: &str) -> anyhow::Result<()> {
        let owner = self.owner().await?;
        let sql = format!(
            "CREATE TABLE {table} (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, \
             created_at timestamptz NOT NULL DEFAULT clock_timestamp(), customer text NOT NULL, payload text NOT NULL); \
             ALTER TABLE {table} ALTER COLUMN payload SET STORAGE EXTERNAL; CREATE INDEX ON {table} (created_at, id)"
        );
        owner.batch_execute(&sql).await?;
        let granted: Vec<_> = table.split_once('.').into_iter().collect();
        migrate::grant(&owner, &migrate::relay_grants("relay", &granted)).await?;
        Ok(())
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

    /// The superuser's.
    pub fn owner_url(&self) -> String {
        self.postgres.url("postgres", DATABASE)
    }

    /// The broker's address.
    pub fn servers(&self) -> String {
        self.broker.bootstrap_servers()
    }

    /// The usual way, on this machine.
    pub fn near(&self) -> Way {
        Way { url: self.url(), servers: self.servers() }
    }

    /// The way through proxies that hold everything for this long in each direction; also what is on its way already.
    pub fn far(&self, one_way: Duration) -> Way {
        self.proxies.iter().for_each(|proxy| proxy.delay(one_way));
        let url = self.url().replace(&format!(":{}/", self.postgres.port()), &format!(":{}/", self.proxies[0].port()));
        Way { url, servers: format!("127.0.0.1:{}", self.proxies[1].port()) }
    }

    /// The cluster as the relay itself would use it.
    pub fn cluster(&self) -> Cluster {
        cluster(&self.servers())
    }

    /// Fills a table up to so many rows of distinct instants and 50 customers.
    pub async fn fill(&self, payload: Payload, rows: u64) -> anyhow::Result<()> {
        self.fill_table(payload.table(), payload.column_bytes(), rows).await
    }

    /// The same with a table of [`Self::table`].
    pub async fn fill_table(&self, table: &str, bytes: i32, rows: u64) -> anyhow::Result<()> {
        let owner = self.owner().await?;
        let there: i64 = owner.query_one(&format!("SELECT count(*) FROM {table}"), &[]).await?.get(0);
        if u64::try_from(there)? == rows {
            return Ok(());
        }
        ensure!(there == 0, "{table} holds {there} rows already");
        let sql = format!(
            "INSERT INTO {table} (customer, payload) SELECT 'c' || i % 50, rpad(i::text, $2, 'x') FROM generate_series(1, $1::bigint) i"
        );
        owner.execute(&sql, &[&i64::try_from(rows)?, &bytes]).await?;
        owner.batch_execute(&format!("VACUUM ANALYZE {table}")).await?;
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

    /// Waits until all that has been written is on the disk: what is measured next would wait for it, too.
    pub async fn rest(&self) -> anyhow::Result<()> {
        Ok(tokio::task::spawn_blocking(rustix::fs::sync).await?)
    }

    /// A new topic of one partition.
    pub async fn topic(&self) -> anyhow::Result<String> {
        self.topic_with(&[]).await
    }

    /// The same, whose records have the time when the broker appended them.
    pub async fn stamped_topic(&self) -> anyhow::Result<String> {
        self.topic_with(&[("message.timestamp.type", "LogAppendTime")]).await
    }

    async fn topic_with(&self, settings: &[(&str, &str)]) -> anyhow::Result<String> {
        let name = format!("bench-{}", self.topics.fetch_add(1, Ordering::Relaxed));
        // Deleted at once when it is deleted: a full run would fill a small disk otherwise.
        self.broker.create_topic(&name, 1, &[&[("file.delete.delay.ms", "0")], settings].concat()).await?;
        Ok(name)
    }

    /// Checks that a topic holds exactly this many records, and removes it.
    pub async fn close(&self, topic: &str, records: u64) -> anyhow::Result<()> {
        let held = self.records(topic)?;
        ensure!(held as u64 == records, "topic {topic} holds {held} records, expected {records}");
        delete_topic(&self.servers(), topic).await
    }

    /// How many records a topic of one partition holds, by its watermarks.
    pub fn records(&self, topic: &str) -> anyhow::Result<usize> {
        let consumer: BaseConsumer = self.cluster().client_config().create()?;
        let (low, high) = consumer.fetch_watermarks(topic, 0, PATIENCE)?;
        Ok(usize::try_from(high - low)?)
    }
}

/// A cluster of this address.
pub fn cluster(servers: &str) -> Cluster {
    Cluster::new(ClusterConfig { bootstrap_servers: servers.to_owned(), ..ClusterConfig::default() })
}
