//! Servers that all tests of this process share, started by the first that needs them and gone with the process.
//!
//! A test that kills or restarts a server starts one of its own.

use std::sync::atomic::{AtomicU32, Ordering};

use outbox_testkit::kafka::{BrokerOptions, RealBroker};
use outbox_testkit::postgres::{Options, Postgres, login};
use tokio::sync::OnceCell;
use tokio_postgres::Client;

/// Roles of every test database. `relay` has what the product's role has, and no `pg_read_all_stats`; `relay_stats`
/// has it too.
pub fn roles() -> [String; 4] {
    let template = "CREATE DATABASE template_outbox".to_owned();
    [login("relay"), login("relay_stats") + " IN ROLE pg_read_all_stats", login("app"), template]
}

/// One database of the shared cluster, for one test.
#[derive(Debug)]
pub struct Database {
    pub name: String,
    pub postgres: &'static Postgres,
}

/// The shared cluster.
pub async fn postgres() -> &'static Postgres {
    static SHARED: OnceCell<Postgres> = OnceCell::const_new();
    SHARED
        .get_or_init(|| async {
            let settings = [
                ("max_connections", "300"),
                // Else a worker comes to each test's database once a minute until the end, long after the test.
                ("autovacuum_naptime", "10min"),
                // What a crash of the machine needs, and makes each copy of the template cost those who write meanwhile.
                ("full_page_writes", "off"),
            ];
            let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
            let postgres = Postgres::start(Options { settings, ..Options::default() }).await.expect("PostgreSQL");
            prepare(&postgres).await;
            postgres
        })
        .await
}

/// The shared broker.
pub async fn broker() -> &'static RealBroker {
    static SHARED: OnceCell<RealBroker> = OnceCell::const_new();
    let options = BrokerOptions { left_alone: true, ..BrokerOptions::default() };
    SHARED.get_or_init(|| async { RealBroker::start_with(&options).await.expect("Apache Kafka") }).await
}

/// A new database made from the template, in the shared cluster.
pub async fn database() -> Database {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let postgres = postgres().await;
    let name = format!("test_{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let owner = postgres.connect("postgres", "postgres").await.expect("a connection as superuser");
    // Half the processor time of the usual way, which writes every page of the template to the log, too.
    let copy = format!("CREATE DATABASE {name} TEMPLATE template_outbox STRATEGY file_copy");
    owner.batch_execute(&copy).await.expect("a test database");
    Database { name, postgres }
}

/// Makes roles and the template; also for a cluster of a test's own.
pub async fn prepare(postgres: &Postgres) {
    let owner = postgres.connect("postgres", "postgres").await.expect("a connection as superuser");
    for statement in roles() {
        // One at a time: CREATE DATABASE refuses to be part of several.
        owner.batch_execute(&statement).await.expect("roles and template");
    }
    let mut template = postgres.connect("postgres", "template_outbox").await.expect("a connection to the template");
    outbox_relay::migrate::up(&mut template).await.expect("migrations");
    for role in ["relay", "relay_stats"] {
        let grants = outbox_relay::migrate::relay_grants(role, &[]);
        outbox_relay::migrate::grant(&template, &grants).await.expect("grants");
    }
}

impl Database {
    /// A connection as this role; `postgres` is the superuser.
    pub async fn connect(&self, role: &str) -> Client {
        self.postgres.connect(role, &self.name).await.expect("a connection")
    }

    /// The connection URL of this role.
    pub fn url(&self, role: &str) -> String {
        self.postgres.url(role, &self.name)
    }
}
