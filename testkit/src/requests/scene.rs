//! What requests are played on: database, two providers, and the configuration of the replicas.

use tokio_postgres::Client;

use super::{MAILS, TEXTS, ledger, play};
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
    /// Honours idempotency keys: what comes again under one is no second mail.
    pub(super) mails: Provider,
    /// Does not: what comes again is a second text.
    pub(super) texts: Provider,
    pub(super) replicas: Replicas,
    /// Superuser, for the view and for the ground truth.
    pub(super) owner: Client,
}

/// What the templates say. Replicas that start later than others may have another: what is sent again must not.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wording {
    First,
    Second,
}

impl Stage for Scene {
    fn title(options: &Options) -> String {
        format!("outbox-relay demo: requests, {} replicas, seed {}", options.replicas, options.seed)
    }

    async fn set(options: &Options, view: &mut View) -> anyhow::Result<Self> {
        view.note("starting PostgreSQL");
        let (postgres, owner) = database::start().await?;
        let seed = options.seed;
        let decide = move |request: &Request| faulty(seed, request);
        let (mails, texts) = (Provider::start(decide).await?, Provider::start(decide).await?);
        view.note(&format!("starting {} replicas of `outbox-relay run`", options.replicas));
        let replicas = Replicas::prepare(options.replicas)?;
        let mut scene = Self { postgres, mails, texts, replicas, owner };
        let config = scene.config(Wording::First);
        scene.replicas.start(&config)?;
        Ok(scene)
    }

    async fn play(&mut self, options: &Options, view: &mut View) -> anyhow::Result<Verdict> {
        play::play(options, self, view).await
    }

    async fn clear(self) -> anyhow::Result<()> {
        drop((self.mails, self.texts));
        drop(self.owner);
        self.replicas.stop().await?;
        self.postgres.stop().await
    }
}

impl Scene {
    /// Waits until both templates can be asked for: a relay makes them known when it starts.
    pub(super) async fn begun(&self) -> anyhow::Result<()> {
        let known = async || ledger::knows_the_templates(&self.owner).await;
        self.replicas.until("The templates are not known", known).await
    }

    /// Where callers connect, with the role of an application.
    pub(super) fn app_url(&self) -> String {
        self.postgres.url("app", "postgres")
    }

    /// Replicas that start from now on have other words.
    pub(super) fn reword(&self) -> anyhow::Result<()> {
        self.replicas.configure(&self.config(Wording::Second))
    }

    /// A short deadline, so that a request that hangs is given up after 1.2 s, and what a killed replica had is found
    /// after 4.8 s.
    fn config(&self, wording: Wording) -> String {
        let (url, hello) = (self.postgres.url("relay", "postgres"), format!("{wording:?}"));
        let relay = |(name, template): (&str, &str), policy: &str, provider: &Provider, memory: &str| {
            format!(
                r#"
[[relay]]
name = "{name}"
on_unknown = "{policy}"
[relay.source.requests]
templates = ["{template}"]
[relay.turn]
deadline = "2s"
[relay.sink.http]
url = "{}/messages"
headers = {{ Content-Type = "application/json" }}
body = '{{"about": {{{{ dedupe_key | tojson }}}}, "to": {{{{ user_id | tojson }}}}, "wording": "{hello}"}}'
{memory}
"#,
                provider.url()
            )
        };
        let mails = relay(MAILS, "resend", &self.mails, "key_memory = \"1h\"");
        let texts = relay(TEXTS, "dead_letter", &self.texts, "");
        format!("[postgres]\nurl = \"{url}\"\n{mails}{texts}")
    }
}

/// By what the message is about: its id is another in each play.
fn faulty(seed: u64, request: &Request) -> Answer {
    let body: serde_json::Value = serde_json::from_str(&request.body).unwrap_or_default();
    faults::answer(seed, body["about"].as_str().unwrap_or_default(), request.attempt)
}
