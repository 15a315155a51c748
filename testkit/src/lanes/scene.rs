//! What the lanes are played on: database, table, provider, and the configuration of the replicas.

use std::time::Duration;

use tokio_postgres::Client;

use super::rows::{self, REFUSED};
use super::{IN_FLIGHT, RELAYS, play};
use crate::delivery::Verdict;
use crate::postgres::Postgres;
use crate::provider::{Answer, Provider, Request};
use crate::replicas::Replicas;
use crate::view::View;
use crate::{Options, Stage, database};

/// The provider's status for a number that it does not send to.
const NOT_SENT: u16 = 400;
/// How long the provider takes for a message.
const TAKES: std::ops::Range<u64> = 30..80;

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
        format!("outbox-relay demo: lanes, {} replicas, seed {}", options.replicas, options.seed)
    }

    async fn set(options: &Options, view: &mut View) -> anyhow::Result<Self> {
        view.note("starting PostgreSQL");
        let (postgres, owner) = database::start().await?;
        rows::create(&owner).await?;
        let provider = Provider::start(takes).await?;
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

    /// The ids that the provider has accepted of a relay, in this order.
    pub(super) fn accepted(&self, relay: &str) -> Vec<String> {
        let id = |key: &str| Some(key.strip_prefix(relay)?.strip_prefix('/')?.to_owned());
        self.provider.received().iter().filter(|one| one.is_accepted()).filter_map(|one| id(&one.request.key)).collect()
    }
}

/// Takes every message.
pub(super) fn takes(_: &Request) -> Answer {
    Answer::Late(Duration::from_millis(fastrand::u64(TAKES)))
}

/// Takes every message but those to one number, which it refuses for good.
pub(super) fn refuses(request: &Request) -> Answer {
    let to = format!("To=%2B{}", REFUSED.trim_start_matches('+'));
    if request.body.split('&').any(|field| field == to) { Answer::Refuse(NOT_SENT) } else { takes(request) }
}

fn config(postgres: &Postgres, provider: &Provider) -> String {
    let (url, provider) = (postgres.url("relay", "postgres"), provider.url());
    let relay = |policy: &str| {
        format!(
            r#"
[[relay]]
name = "{policy}"
start = "beginning"
on_poison = "{policy}"
[relay.source.stream]
table = "public.messages"
[relay.turn]
in_flight = {IN_FLIGHT}
[relay.sink.sms]
provider = "twilio"
base_url = "{provider}"
account_sid = "AC00000000000000000000000000000000"
auth_token = "demo-token"
from = "+15550009999"
to = "{{{{ phone }}}}"
text = "{{{{ body }}}}"
"#
        )
    };
    format!("[postgres]\nurl = \"{url}\"\n{}", RELAYS.map(relay).concat())
}
