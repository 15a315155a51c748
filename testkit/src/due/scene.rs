//! What the reminders are played on: database, tables, provider, and the configuration of the replicas.

use tokio_postgres::Client;

use super::play;
use super::rows::{self, REMINDERS, WELCOME};
use crate::delivery::Verdict;
use crate::postgres::Postgres;
use crate::provider::Provider;
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
        format!("outbox-relay demo: reminders, {} replicas, seed {}", options.replicas, options.seed)
    }

    async fn set(options: &Options, view: &mut View) -> anyhow::Result<Self> {
        view.note("starting PostgreSQL");
        let (postgres, owner) = database::start().await?;
        let seed = options.seed;
        let provider = Provider::start(move |request| faults::answer(seed, request.row(), request.attempt)).await?;
        view.note(&format!("starting {} replicas of `outbox-relay run`", options.replicas));
        rows::fill(&owner, seed, options.writing).await?;
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
    /// Waits for the first request: from then on a kill finds something.
    pub(super) async fn begun(&self) -> anyhow::Result<()> {
        let asked = async || Ok(self.provider.count() > 0);
        self.replicas.until("The provider has not been asked for anything", asked).await
    }
}

/// A short deadline, so that a request that hangs is given up after 1.2 s, and the claims of a killed replica are free
/// after 4.8 s.
fn config(postgres: &Postgres, provider: &Provider) -> String {
    let (url, provider) = (postgres.url("relay", "postgres"), provider.url());
    format!(
        r#"[postgres]
url = "{url}"

[[relay]]
name = "{REMINDERS}"
[relay.source.pending]
table = "public.todos"
key = ["workspaceId", "id"]
due = "dueDate"
sent = "delayNotificationSent"
[relay.turn]
deadline = "2s"
[relay.sink.http]
method = "PUT"
url = "{provider}/notifications/delayed-{{{{ id }}}}"

[[relay]]
name = "{WELCOME}"
guarantee = "at_most_once"
[relay.source.pending]
table = "public.users"
key = ["id"]
due = "created"
due_after = "6h"
time_zone = "UTC"
sent = "sent_welcome"
limit = 100
[relay.turn]
deadline = "2s"
[relay.sink.http]
method = "POST"
url = "{provider}/welcome"
"#
    )
}
