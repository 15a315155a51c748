//! What the lanes are played on: the stage of one table and one provider, what the provider does, and the configuration of the
//! replicas.

use std::time::Duration;

use super::rows::{BEGUN, REFUSED, TABLE};
use super::{IN_FLIGHT, RELAYS, play};
use crate::Options;
use crate::delivery::Verdict;
use crate::postgres::Postgres;
use crate::provider::{Answer, Provider, Request};
use crate::table_scene::{self, Part, Played};
use crate::view::View;

/// The provider's status for a number that it does not send to.
const NOT_SENT: u16 = 400;
/// How long the provider takes for a message.
const TAKES: std::ops::Range<u64> = 30..80;

/// The stage of the lanes.
pub(crate) type Scene = table_scene::Scene<Lanes>;

/// The scenario lanes.
#[derive(Debug)]
pub(crate) struct Lanes;

impl Played for Lanes {
    const PART: Part =
        Part { name: "lanes", table: TABLE, begun: BEGUN, relays: RELAYS, answer: |_, request| takes(request), config };

    async fn play(options: &Options, scene: &mut Scene, view: &mut View) -> anyhow::Result<Verdict> {
        play::play(options, scene, view).await
    }
}

impl Scene {
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
