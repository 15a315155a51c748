//! What the jobs are played on: database, table, provider, and the configuration of the replicas.

use tokio_postgres::Client;

use super::{IN_FLIGHT, RELAYS, play, rows};
use crate::delivery::Verdict;
use crate::postgres::Postgres;
use crate::provider::{Answer, Provider, Request};
use crate::replicas::Replicas;
use crate::view::View;
use crate::{Options, Stage, database, faults};

/// All of it. Dropped, it is gone, too.
#[derive(Debug)]
pub(crate) struct Scene {
    postgres: Postgres,
    pub(super) provider: Provider,
    pub(super) replicas: Replicas,
    /// Superuser, for the view and for the ground truth.
    pub(super) owner: Client,
}

impl Stage for Scene {
    fn title(options: &Options) -> String {
        format!("outbox-relay demo: jobs, {} replicas, seed {}", options.replicas, options.seed)
    }

    async fn set(options: &Options, view: &mut View) -> anyhow::Result<Self> {
        view.note("starting PostgreSQL");
        let (postgres, owner) = database::start().await?;
        rows::create(&owner).await?;
        let seed = options.seed;
        let provider = Provider::start(move |request| faulty(seed, request)).await?;
        view.note(&format!("starting {} replicas of `outbox-relay run`", options.replicas));
        let mut replicas = Replicas::prepare(options.replicas)?;
        replicas.start(&config(&postgres, &provider))?;
        Ok(Self { postgres, provider, replicas, owner })
    }

    async fn play(&mut self, options: &Options, view: &mut View) -> anyhow::Result<Verdict> {
        play::play(options, self, view).await
    }

    async fn clear(self) -> anyhow::Result<()> {
        drop(self.provider);
        drop(self.owner);
        self.replicas.stop().await?;
        self.postgres.stop().await
    }
}

impl Scene {
    /// Waits for the three cursors.
    pub(super) async fn begun(&self) -> anyhow::Result<()> {
        self.replicas.until("The relays have made no cursors", async || rows::begun(&self.owner).await).await
    }

    /// A connection of the application's.
    pub(super) async fn app(&self) -> anyhow::Result<Client> {
        Ok(crate::postgres::connect(&self.postgres.url("app", "postgres")).await?)
    }
}

/// By relay and message: the ids of requests are others in each play.
fn faulty(seed: u64, request: &Request) -> Answer {
    faults::answer(seed, &format!("{} {}", request.path, request.body), request.attempt)
}

/// A short deadline, so that a request that hangs is given up after 1.2 s, and the claims of a killed replica are free
/// after 4.8 s.
fn config(postgres: &Postgres, provider: &Provider) -> String {
    let (url, provider) = (postgres.url("relay", "postgres"), provider.url());
    let [alone, lanes, requests] = RELAYS;
    let pending = |name: &str, source: &str, turn: &str| {
        format!(
            r#"
[[relay]]
name = "{name}"
[relay.source.pending]
table = "public.reminders"
key = ["id"]
due = "due"
sent = "sent_{name}"
{source}
[relay.turn]
deadline = "2s"
{turn}
[relay.sink.http]
url = "{provider}/{name}"
body = "{{{{ id }}}}"
"#
        )
    };
    let in_lanes = format!("in_flight = {IN_FLIGHT}\nlane = \"phone\"");
    let (alone, lanes) = (pending(alone, &format!("in_flight = {IN_FLIGHT}"), ""), pending(lanes, "", &in_lanes));
    format!(
        r#"[postgres]
url = "{url}"
{alone}{lanes}
[[relay]]
name = "{requests}"
on_unknown = "resend"
[relay.source.requests]
templates = ["reminder"]
[relay.turn]
deadline = "2s"
{in_lanes}
[relay.sink.http]
url = "{provider}/{requests}"
body = "{{{{ n }}}}"
key_memory = "1h"
"#
    )
}
