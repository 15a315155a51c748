//! What the jobs are played on: the stage of one table and one provider, and the configuration of the replicas.

use super::rows::{BEGUN, TABLE};
use super::{IN_FLIGHT, RELAYS, play};
use crate::delivery::Verdict;
use crate::postgres::Postgres;
use crate::provider::{Answer, Provider, Request};
use crate::table_scene::{self, Part, Played};
use crate::view::View;
use crate::{Options, faults};

/// The stage of the jobs.
pub(crate) type Scene = table_scene::Scene<Jobs>;

/// The scenario jobs.
#[derive(Debug)]
pub(crate) struct Jobs;

impl Played for Jobs {
    const PART: Part = Part { name: "jobs", table: TABLE, begun: BEGUN, relays: RELAYS, answer: faulty, config };

    async fn play(options: &Options, scene: &mut Scene, view: &mut View) -> anyhow::Result<Verdict> {
        play::play(options, scene, view).await
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
