//! What schedules are played on: database, an endpoint for each tenant, and the configuration of the replicas.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use anyhow::Context as _;
use tokio_postgres::Client;

use super::{HANGING, RELAY, play, rows};
use crate::delivery::Verdict;
use crate::postgres::Postgres;
use crate::provider::{Answer, Provider, Request};
use crate::replicas::Replicas;
use crate::view::View;
use crate::{Options, Stage, database, postgres};

/// All of it. Dropped, it is gone, too.
#[derive(Debug)]
pub(crate) struct Scene {
    postgres: Postgres,
    /// Each tenant's endpoint is a path of it.
    pub(super) provider: Provider,
    pub(super) replicas: Replicas,
    /// Superuser, for the view and for the ground truth.
    pub(super) owner: Client,
}

impl Stage for Scene {
    fn title(options: &Options) -> String {
        format!("outbox-relay demo: schedules, {} replicas, seed {}", options.replicas, options.seed)
    }

    async fn set(options: &Options, view: &mut View) -> anyhow::Result<Self> {
        view.note("starting PostgreSQL");
        let (postgres, owner) = database::start().await?;
        let seed = options.seed;
        let provider = Provider::start(move |request| answer(seed, request)).await?;
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
    /// Waits until every replica is at work.
    pub(super) async fn begun(&self, wanted: usize) -> anyhow::Result<()> {
        let wanted = i64::try_from(wanted)?;
        let ready = async || {
            let known = "SELECT count(*) FROM outbox.cursor WHERE name = $1";
            let known: i64 = self.owner.query_one(known, &[&RELAY]).await?.get(0);
            Ok(known == 1 && rows::connected(&self.owner, "%").await? == wanted)
        };
        self.replicas.until("Not every replica is at work", ready).await
    }

    /// A connection with the role of an application.
    pub(super) async fn app(&self) -> anyhow::Result<Client> {
        postgres::connect(&self.postgres.url("app", "postgres")).await.context("The application cannot connect")
    }
}

/// Never at once: a kill shall find actions on their way.
fn answer(seed: u64, request: &Request) -> Answer {
    if request.path.strip_prefix('/').is_some_and(|path| path.starts_with(HANGING)) {
        return Answer::Lose;
    }
    let mut hasher = DefaultHasher::new();
    (seed, &request.path, &request.body, request.attempt).hash(&mut hasher);
    Answer::Late(Duration::from_millis(10 + hasher.finish() % 90))
}

/// A tenant may have all of its schedules at work at once: who waits for whom is told apart by schedule.
fn config(postgres: &Postgres, provider: &Provider) -> String {
    format!(
        r#"[postgres]
url = "{}"

[[relay]]
name = "{RELAY}"
[relay.source.schedule]
per_tenant_concurrency = 16
[relay.sink.http]
url = "{}/{{{{ tenant }}}}"
"#,
        postgres.url("relay", "postgres"),
        provider.url()
    )
}
