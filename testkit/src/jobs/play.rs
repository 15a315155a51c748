//! The story: the application writes, the provider fails, hangs and answers late, replicas are killed and start again,
//! everything settles, and the provider is asked what it has.

use std::time::Duration;

use tokio::time::Instant;

use super::RELAYS;
use super::judge::{Arrival, Figures, Findings};
use super::rows::{self, Application};
use super::scene::Scene;
use super::summary::Summary;
use crate::delivery::Verdict;
use crate::kills::{self, Kill};
use crate::provider::{Answer, Received};
use crate::view::View;
use crate::{Options, look};

/// Half of what a sender waits for its answer: who was answered later may have gone before.
const IN_GOOD_TIME: Duration = Duration::from_millis(600);

/// Everything between the stage's setting and its clearing; the verdict goes to standard output.
pub(super) async fn play(options: &Options, scene: &mut Scene, view: &mut View) -> anyhow::Result<Verdict> {
    scene.begun().await?;
    view.start();
    view.note("the application writes; the provider fails, hangs and answers late");
    let application = Application::start(scene.app().await?, options.seed);
    let (begun, mut kills) = (Instant::now(), Vec::new());
    for (at, victim) in kills::plan(options) {
        look::until(view, begun + at, async || present(scene).await).await?;
        let kill = Kill::new(scene.replicas.kill9(&victim).await?, &victim, begun.elapsed(), &[]);
        view.note(&kill.to_string());
        kills.push(kill);
        scene.replicas.restart(&victim)?;
    }
    look::until(view, begun + options.writing, async || present(scene).await).await?;
    application.end().await?;
    scene.provider.decide(|_| Answer::Accept);
    view.note("the application has ended, and the provider is well again");
    look::settle(view, async || rows::settled(&scene.owner).await, async || present(scene).await).await?;
    for wrong in scene.replicas.drain().await? {
        view.note(&wrong);
    }
    let findings = Findings { relays: figures(scene).await?, kills: kills.len() };
    let verdict = findings.verdict();
    let committed = rows::all(&scene.owner).await?.len();
    let summary = Summary::new(options, committed, findings, &scene.provider.received(), kills);
    println!("\n{}", summary.table());
    if options.json {
        println!("{}", serde_json::to_string(&summary)?);
    }
    Ok(verdict)
}

/// What a relay has sent, in order.
fn arrivals(received: &[Received], relay: &str) -> Vec<Arrival> {
    let of_relay = received.iter().filter(|one| one.request.path.trim_start_matches('/') == relay);
    let arrival = |one: &Received| Arrival {
        // What is no number is no row of the table either.
        id: one.request.body.parse().unwrap_or_default(),
        accepted: one.is_accepted(),
        answered: one.took().is_some_and(|took| took <= IN_GOOD_TIME),
    };
    of_relay.map(arrival).collect()
}

async fn figures(scene: &Scene) -> anyhow::Result<[Figures; 3]> {
    let (rows, received) = (rows::all(&scene.owner).await?, scene.provider.received());
    Ok(RELAYS.map(|relay| Figures::of(&rows, &arrivals(&received, relay))))
}

async fn present(scene: &Scene) -> anyhow::Result<Vec<String>> {
    let figures = figures(scene).await?;
    let line = |(relay, one): (&str, &Figures)| {
        format!(
            "{relay:<9} sent {:>5}   waiting {:>4}   repeated {:>3}   overtaking {:>4}, of {:>2} numbers",
            one.sent, one.waiting, one.repeated, one.overtaking, one.numbers
        )
    };
    let mut lines: Vec<String> = RELAYS.into_iter().zip(&figures).map(line).collect();
    lines.push(scene.replicas.states());
    Ok(lines)
}
