//! What a table of messages is played on, where three relays send them to one provider: database, table, provider and replicas.
//! What a scenario has of its own is a [`Part`], and its play.

use std::marker::PhantomData;

use tokio_postgres::Client;

use super::delivery::Verdict;
use super::postgres::{Postgres, connect};
use super::provider::{Answer, Provider, Request};
use super::replicas::Replicas;
use super::view::View;
use super::{Options, Stage, database};

/// What a scenario has of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// Of the scenario, for people.
    pub(crate) name: &'static str,
    /// Makes the table.
    pub(crate) table: &'static str,
    /// Answers whether the relays, whose names are its parameter, are ready.
    pub(crate) begun: &'static str,
    /// The names of the relays, which are those of their cursors.
    pub(crate) relays: [&'static str; 3],
    /// What the provider does at first, by the seed.
    pub(crate) answer: fn(u64, &Request) -> Answer,
    /// The configuration of the replicas.
    pub(crate) config: fn(&Postgres, &Provider) -> String,
}

/// A scenario of this kind.
pub(crate) trait Played: Sized {
    /// See there.
    const PART: Part;
    /// Everything between the stage's setting and its clearing; the verdict goes to standard output.
    async fn play(options: &Options, scene: &mut Scene<Self>, view: &mut View) -> anyhow::Result<Verdict>;
}

/// All of it. Dropped, it is gone, too.
#[derive(Debug)]
pub(crate) struct Scene<P> {
    postgres: Postgres,
    pub(crate) provider: Provider,
    pub(crate) replicas: Replicas,
    /// Superuser, for the view and for the ground truth.
    pub(crate) owner: Client,
    played: PhantomData<P>,
}

impl<P: Played> Stage for Scene<P> {
    fn title(options: &Options) -> String {
        format!("outbox-relay demo: {}, {} replicas, seed {}", P::PART.name, options.replicas, options.seed)
    }

    async fn set(options: &Options, view: &mut View) -> anyhow::Result<Self> {
        let (Part { table, answer, config, .. }, seed) = (P::PART, options.seed);
        view.note("starting PostgreSQL");
        let (postgres, owner) = database::start().await?;
        owner.batch_execute(table).await?;
        let provider = Provider::start(move |request| answer(seed, request)).await?;
        view.note(&format!("starting {} replicas of `outbox-relay run`", options.replicas));
        let mut replicas = Replicas::prepare(options.replicas)?;
        replicas.start(&config(&postgres, &provider))?;
        Ok(Self { postgres, provider, replicas, owner, played: PhantomData })
    }

    async fn play(&mut self, options: &Options, view: &mut View) -> anyhow::Result<Verdict> {
        P::play(options, self, view).await
    }

    async fn clear(self) -> anyhow::Result<()> {
        drop(self.provider);
        drop(self.owner);
        self.replicas.stop().await?;
        self.postgres.stop().await
    }
}

impl<P: Played> Scene<P> {
    /// Waits for the three cursors, and whatever else the scenario needs.
    pub(crate) async fn begun(&self) -> anyhow::Result<()> {
        let Part { begun, relays, .. } = P::PART;
        let are_ready = async || Ok(self.owner.query_one(begun, &[&relays.as_slice()]).await?.get::<_, bool>(0));
        self.replicas.until("The relays have made no cursors", are_ready).await
    }

    /// A connection of the application's.
    pub(crate) async fn app(&self) -> anyhow::Result<Client> {
        Ok(connect(&self.postgres.url("app", "postgres")).await?)
    }
}
