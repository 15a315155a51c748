//! Everything the demo plays on: database, table, topic, gateway, and the configuration of the replicas.

use anyhow::Context as _;
use tokio_postgres::Client;

use super::bookings::Table;
use super::gateway::{ACCOUNT_SID, AUTH_TOKEN, Gateway};
use super::kafka::{MockBroker, RealBroker, create_topic, delete_topic};
use super::postgres::{Options, Postgres, login};
use super::replicas::Replicas;
use super::startup::private;
use super::view::View;
use super::{Kafka, Stage, play, startup};
use crate::delivery::Verdict;
use outbox_relay::migrate;

/// The Kafka relay and its cursor.
pub(super) const EVENTS: &str = "booking_events";
/// The SMS relay and its cursor.
pub(super) const SMS: &str = "booking_sms";

/// So many that what the in-process broker keeps of each is never full before the consumer has read it.
const PARTITIONS: i32 = 8;

/// The application can write, and the trigger says when a row was made: so the order is proven, not assumed.
const ROLES: [&str; 2] = ["relay", "app"];
const GRANTS: &str = "
    REVOKE ALL ON public.bookings FROM app;
    GRANT SELECT, INSERT (customer, region, phone, payload) ON public.bookings TO app;
    CREATE TRIGGER zz_stamp_created_at BEFORE INSERT OR UPDATE OF created_at ON public.bookings
        FOR EACH ROW EXECUTE FUNCTION outbox.stamp_created_at();
    ALTER TABLE public.bookings ENABLE ALWAYS TRIGGER zz_stamp_created_at;";

/// All of it. Dropped, it is gone, too, except for a topic on somebody else's broker.
#[derive(Debug)]
pub(super) struct Scene {
    pub(super) postgres: Postgres,
    pub(super) broker: Broker,
    pub(super) gateway: Gateway,
    pub(super) replicas: Replicas,
    /// Superuser, for the view and for the ground truth.
    pub(super) owner: Client,
}

#[derive(Debug)]
pub(super) enum Broker {
    InProcess(MockBroker),
    Own(Box<RealBroker>),
    Other { servers: String, topic: String },
}

impl Broker {
    async fn start(kafka: &Kafka, view: &mut View) -> anyhow::Result<Self> {
        let broker = match kafka {
            Kafka::InProcess => Self::InProcess(MockBroker::start()?),
            Kafka::Own => {
                view.note("starting Apache Kafka");
                Self::Own(Box::new(RealBroker::start().await?))
            }
            Kafka::At(servers) => {
                // A name of its own: whatever else that broker holds is not the demo's.
                let tag: String = (0..6).map(|_| fastrand::lowercase()).collect();
                Self::Other { servers: servers.clone(), topic: format!("outbox-relay-demo-{tag}") }
            }
        };
        match &broker {
            Self::InProcess(mock) => mock.create_topic(broker.topic(), PARTITIONS)?,
            Self::Own(real) => real.create_topic(broker.topic(), PARTITIONS, &[]).await?,
            Self::Other { servers, topic } => create_topic(servers, topic, PARTITIONS, &[]).await?,
        }
        Ok(broker)
    }

    pub(super) fn servers(&self) -> String {
        match self {
            Self::InProcess(mock) => mock.bootstrap_servers(),
            Self::Own(real) => real.bootstrap_servers(),
            Self::Other { servers, .. } => servers.clone(),
        }
    }

    pub(super) fn topic(&self) -> &str {
        match self {
            Self::InProcess(_) | Self::Own(_) => "bookings",
            Self::Other { topic, .. } => topic,
        }
    }

    async fn stop(self) -> anyhow::Result<()> {
        match self {
            Self::InProcess(mock) => drop(mock),
            Self::Own(real) => real.stop().await?,
            Self::Other { servers, topic } => delete_topic(&servers, &topic).await?,
        }
        Ok(())
    }
}

impl Stage for Scene {
    fn title(options: &super::Options) -> String {
        let broker = match &options.kafka {
            Kafka::InProcess => "in-process broker".to_owned(),
            Kafka::Own => "Apache Kafka".to_owned(),
            Kafka::At(servers) => format!("Kafka at {servers}"),
        };
        format!("outbox-relay demo: {} replicas, {broker}, seed {}", options.replicas, options.seed)
    }

    async fn set(options: &super::Options, view: &mut View) -> anyhow::Result<Self> {
        let (kafka, replicas) = (&options.kafka, options.replicas);
        view.note("starting PostgreSQL");
        let postgres = Postgres::start(Options::default()).await?;
        let owner = postgres.connect("postgres", "postgres").await?;
        owner.batch_execute(&ROLES.map(login).join(";")).await?;
        owner.batch_execute("CREATE DATABASE app").await?;
        let mut owner = postgres.connect("postgres", "app").await?;
        migrate::up(&mut owner).await.context("Cannot make the schema outbox")?;
        Table::PLAIN.create(&owner).await?;
        owner.batch_execute(GRANTS).await?;
        migrate::grant(&owner, &migrate::relay_grants("relay", &[("public", "bookings")])).await?;

        let broker = Broker::start(kafka, view).await?;
        let gateway = Gateway::start().await?;
        view.note(&format!("starting {replicas} replicas of `outbox-relay run`"));
        let mut replicas = Replicas::prepare(replicas)?;
        let token = replicas.dir().join("auth-token");
        private(&token, AUTH_TOKEN)?;
        let config = config(&postgres, &broker, &gateway, &token.display().to_string());
        replicas.start(&config)?;
        Ok(Self { postgres, broker, gateway, replicas, owner })
    }

    async fn play(&mut self, options: &super::Options, view: &mut View) -> anyhow::Result<Verdict> {
        play::play(options, self, view).await
    }

    async fn clear(self) -> anyhow::Result<()> {
        drop(self.gateway);
        drop(self.owner);
        self.replicas.stop().await?;
        self.broker.stop().await?;
        self.postgres.stop().await
    }
}

impl Scene {
    /// Where the application writes.
    pub(super) fn app_url(&self) -> String {
        self.postgres.url("app", "app")
    }

    /// Waits until every cursor exists and knows where it begins: a row committed before that would not be due.
    pub(super) async fn begun(&mut self) -> anyhow::Result<()> {
        const BEGUN: &str = "SELECT count(*) FROM outbox.cursor WHERE name = $1 OR position_created_at IS NOT NULL";
        let deadline = std::time::Duration::from_secs(30);
        let (owner, replicas) = (&self.owner, &self.replicas);
        let begun = async || {
            let cursors: i64 = owner.query_one(BEGUN, &[&EVENTS]).await?.get(0);
            anyhow::ensure!(cursors == 2, "The replicas have made {cursors} of 2 cursors");
            Ok(())
        };
        let waited = startup::until(deadline, || replicas.are_running(), begun).await;
        waited.with_context(|| format!("The replicas do not start; their logs end with:\n{}", replicas.log_tails()))
    }
}

fn config(postgres: &Postgres, broker: &Broker, gateway: &Gateway, token_file: &str) -> String {
    let (url, servers, topic) = (postgres.url("relay", "app"), broker.servers(), broker.topic());
    let base_url = gateway.base_url();
    format!(
        r#"[postgres]
url = "{url}"

[kafka]
bootstrap_servers = "{servers}"

[[relay]]
name = "{EVENTS}"
[relay.source.stream]
table = "public.bookings"
[relay.sink.kafka]
topic = "{topic}"
key = "customer"
payload = {{ row = true }}

[[relay]]
name = "{SMS}"
start = "now"
[relay.source.stream]
table = "public.bookings"
[relay.sink.sms]
provider = "twilio"
base_url = "{base_url}"
account_sid = "{ACCOUNT_SID}"
auth_token_file = "{token_file}"
from = "+15550000000"
to = "{{{{ phone }}}}"
text = "Booking {{{{ id }}}} confirmed"
"#
    )
}
