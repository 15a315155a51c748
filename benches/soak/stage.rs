//! What all storms share: one PostgreSQL, one Apache Kafka, a network before each, and roles.

use std::path::PathBuf;

use anyhow::Context as _;
use outbox_testkit::kafka::{BrokerOptions, Listener, RealBroker};
use outbox_testkit::postgres::{self, Options, Postgres, login, password};
use outbox_testkit::startup::free_port;
use tokio_postgres::Client;

use super::proxy::Proxy;

const LISTENER: &str = "soak";

/// See the module.
#[derive(Debug)]
pub struct Stage {
    /// The server.
    pub postgres: Postgres,
    /// The broker.
    pub broker: RealBroker,
    /// The relay's way to PostgreSQL.
    pub to_postgres: Proxy,
    /// The relay's way to the broker.
    pub to_broker: Proxy,
    /// What a storm knows of the two; ports stay the same when a server is started again.
    pub access: Access,
}

/// How to reach a storm's database.
#[derive(Clone, Debug)]
pub struct Access {
    /// Port of PostgreSQL.
    pub port: u16,
    /// The storm's database.
    pub database: String,
    /// Port of the relay's way to PostgreSQL.
    pub relay_port: u16,
    /// Address of the broker for consumer and operator.
    pub broker: String,
    /// Address of the broker for the relay.
    pub relay_broker: String,
    /// Major version of PostgreSQL.
    pub major: u32,
    /// The program `pg_repack` for this version, where it is installed.
    pub repack: Option<PathBuf>,
}

impl Stage {
    /// Starts the servers.
    pub async fn start() -> anyhow::Result<Self> {
        let settings = [("max_prepared_transactions", "100"), ("log_lock_waits", "on"), ("deadlock_timeout", "1s")];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let log = [("log_line_prefix".to_owned(), "%m [%p] %q%a ".to_owned())];
        let settings = settings.into_iter().chain(log).collect();
        let postgres = Postgres::start(Options { settings, ..Options::default() }).await.context("PostgreSQL")?;
        let owner = postgres.connect("postgres", "postgres").await?;
        let roles = [login("relay"), login("relay_stats") + " IN ROLE pg_read_all_stats", login("app")];
        owner.batch_execute(&roles.join(";")).await?;
        let version: String = owner.query_one("SHOW server_version_num", &[]).await?.get(0);
        let major = version.parse::<u32>()? / 10_000;
        let known = "SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'pg_repack')";
        let repack = PathBuf::from(format!("/usr/lib/postgresql/{major}/bin/pg_repack"));
        let has_repack = owner.query_one(known, &[]).await?.get::<_, bool>(0) && repack.is_file();

        let advertised = free_port()?;
        let listener = Listener {
            name: LISTENER.to_owned(),
            protocol: "PLAINTEXT",
            advertised: Some(advertised),
            settings: Vec::new(),
        };
        let options = BrokerOptions { listeners: vec![listener], ..BrokerOptions::default() };
        let broker = RealBroker::start_with(&options).await.context("Apache Kafka")?;
        let behind = broker.listener(LISTENER).and_then(|address| address.rsplit(':').next()?.parse().ok());
        let to_broker = Proxy::start(advertised, behind.context("the broker's further listener")?).await?;
        let to_postgres = Proxy::start(free_port()?, postgres.port()).await?;
        let access = Access {
            port: postgres.port(),
            database: String::new(),
            relay_port: to_postgres.port(),
            broker: broker.bootstrap_servers(),
            relay_broker: format!("127.0.0.1:{advertised}"),
            major,
            repack: has_repack.then_some(repack),
        };
        Ok(Self { postgres, broker, to_postgres, to_broker, access })
    }

    /// Makes a database for a storm.
    pub async fn database(&self, name: &str) -> anyhow::Result<Access> {
        let access = Access { database: name.to_owned(), ..self.access.clone() };
        let owner = Access { database: "postgres".to_owned(), ..access.clone() }.owner().await?;
        owner.batch_execute(&format!("CREATE DATABASE {name}")).await?;
        Ok(access)
    }

    /// Removes a storm's database.
    pub async fn drop_database(&self, access: &Access) -> anyhow::Result<()> {
        let owner = Access { database: "postgres".to_owned(), ..access.clone() }.owner().await?;
        Ok(owner.batch_execute(&format!("DROP DATABASE {} WITH (FORCE)", access.database)).await?)
    }

    /// Both servers run and the network carries everything.
    pub async fn heal(&mut self) -> anyhow::Result<()> {
        self.to_postgres.heal();
        self.to_broker.heal();
        if self.access.owner().await.is_err() {
            self.postgres.restart().await?;
        }
        // A broker that is gone cannot be thawed; one that runs is not harmed by it.
        if self.broker.thaw().is_err() {
            self.broker.restart().await?;
        }
        Ok(())
    }

    /// Ends everything.
    pub async fn stop(self) -> anyhow::Result<()> {
        let Self { postgres, broker, .. } = self;
        broker.stop().await?;
        postgres.stop().await
    }
}

impl Access {
    /// The connection URL of this role.
    pub fn url(&self, role: &str) -> String {
        self.url_by(role, self.port)
    }

    /// The connection URL of this role through the network.
    pub fn relay_url(&self, role: &str) -> String {
        self.url_by(role, self.relay_port)
    }

    fn url_by(&self, role: &str, port: u16) -> String {
        let database = if self.database.is_empty() { "postgres" } else { &self.database };
        format!("postgresql://{role}:{}@127.0.0.1:{port}/{database}?sslmode=disable", password(role))
    }

    /// A connection as the superuser, who owns the table.
    pub async fn owner(&self) -> Result<Client, tokio_postgres::Error> {
        postgres::connect(&self.url("postgres")).await
    }
}
