//! A primary and the standby that streams from it, asynchronously, and what a failover makes of them.

use anyhow::Context as _;
use outbox_relay::migrate;
use outbox_testkit::postgres::{Options, Postgres, login};
use rustix::process::{Pid, Signal, kill_process};
use tokio_postgres::Client;

/// Where everything is.
const DATABASE: &str = "postgres";
/// What the standby calls itself.
const NAME: &str = "copy";
/// The relay's role: it must see how far standbys are.
pub const ROLE: &str = "relay_stats";

/// Ids that no other row gets: a sequence begins again after a failover at numbers that were used.
const TABLE: &str = "\
CREATE TABLE public.bookings (id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(), customer text NOT NULL, payload text NOT NULL DEFAULT 'p');
CREATE INDEX ON public.bookings (created_at, id);
GRANT SELECT, INSERT ON public.bookings TO app;";

/// See the module.
#[derive(Debug)]
pub struct Pair {
    primary: Postgres,
    standby: Postgres,
}

impl Pair {
    /// Starts both, with schema, roles and table.
    pub async fn start() -> anyhow::Result<Self> {
        let primary = Postgres::start(Options::default()).await.context("the primary")?;
        let mut owner = primary.connect("postgres", DATABASE).await?;
        let roles = [login(ROLE) + " IN ROLE pg_read_all_stats", login("app")];
        owner.batch_execute(&roles.join(";")).await?;
        migrate::up(&mut owner).await?;
        owner.batch_execute(TABLE).await?;
        migrate::grant(&owner, &migrate::relay_grants(ROLE, &[("public", "bookings")])).await?;
        let standby = primary.standby(NAME).await.context("the standby")?;
        Ok(Self { primary, standby })
    }

    /// The connection URL of this role to the primary.
    pub fn url(&self, role: &str) -> String {
        self.primary.url(role, DATABASE)
    }

    /// A connection to the primary as the superuser.
    pub async fn owner(&self) -> anyhow::Result<Client> {
        Ok(self.primary.connect("postgres", DATABASE).await?)
    }

    /// Stops the process by which the standby receives the log: commits of the primary are no longer on it.
    pub async fn freeze(&self) -> anyhow::Result<Pid> {
        let client = self.standby.connect("postgres", DATABASE).await?;
        let pid: i32 = client.query_one("SELECT pid FROM pg_stat_wal_receiver", &[]).await?.get(0);
        let receiver = Pid::from_raw(pid).context("no process id")?;
        kill_process(receiver, Signal::STOP)?;
        Ok(receiver)
    }

    /// Kills the primary, as with its machine.
    pub async fn kill(&mut self) -> anyhow::Result<()> {
        self.primary.kill9().await
    }

    /// Makes the standby the primary, with a standby of its own.
    pub async fn fail_over(self, receiver: Pid) -> anyhow::Result<Self> {
        let Self { primary, mut standby } = self;
        // What the stopped process has in its hands never comes.
        standby.kill9().await?;
        kill_process(receiver, Signal::KILL)?;
        primary.stop().await?;
        standby.restart().await?;
        standby.promote().await?;
        let next = standby.standby(NAME).await.context("a new standby")?;
        Ok(Self { primary: standby, standby: next })
    }

    /// Ends both.
    pub async fn stop(self) -> anyhow::Result<()> {
        self.standby.stop().await?;
        self.primary.stop().await
    }
}
