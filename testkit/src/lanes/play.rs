//! The story: the application writes, the provider refuses one number, replicas are killed and start again; then the provider takes the
//! number again, an operator gives a command for each relay, and everything settles.

use std::time::Duration;

use anyhow::ensure;
use tokio::time::Instant;

use super::judge::{Figures, Findings};
use super::rows::{self, Application, REFUSED};
use super::scene::{self, Scene};
use super::summary::Summary;
use super::{RELAYS, scene::refuses};
use crate::delivery::Verdict;
use crate::kills::{self, Kill};
use crate::view::View;
use crate::{Options, look};

/// The parts of the play between which the number is refused.
const REFUSED_FROM: f64 = 0.15;
const REFUSED_UNTIL: f64 = 0.65;

/// What the operator enters when the provider takes the number again.
pub(super) const COMMANDS: [&[&str]; 3] = [
    &["cursor", "resume", "halt"],
    &["dead-letter", "redrive", "--cursor", "dead_letter", "--yes"],
    &["dead-letter", "redrive", "--cursor", "park_key", "--yes"],
];

/// What is done when.
enum Act {
    Refuse,
    Kill(String),
    Recover,
}

/// Everything between the stage's setting and its clearing; the verdict goes to standard output.
pub(super) async fn play(options: &Options, scene: &mut Scene, view: &mut View) -> anyhow::Result<Verdict> {
    scene.begun().await?;
    view.start();
    view.note("the application writes; three relays send each message to one provider");
    let application = Application::start(scene.app().await?, options.seed);
    let begun = Instant::now();
    let (mut kills, mut meanwhile) = (Vec::new(), None);
    for (at, act) in acts(options) {
        look::until(view, begun + at, async || present(scene).await).await?;
        match act {
            Act::Refuse => {
                scene.provider.decide(refuses);
                view.note(&format!("the provider refuses {REFUSED} for good"));
            }
            Act::Kill(victim) => {
                let kill = Kill::new(scene.replicas.kill9(&victim).await?, &victim, begun.elapsed(), &[]);
                view.note(&kill.to_string());
                kills.push(kill);
                scene.replicas.restart(&victim)?;
            }
            Act::Recover => meanwhile = Some(recover(scene, &application, view).await?),
        }
    }
    look::until(view, begun + options.writing, async || present(scene).await).await?;
    application.end().await?;
    view.note("the application has ended");
    look::settle(view, async || settled(scene).await, async || present(scene).await).await?;
    for wrong in scene.replicas.drain().await? {
        view.note(&wrong);
    }
    let (refused_rows, meanwhile) = meanwhile.unwrap_or_default();
    let end = figures(scene).await?;
    let findings = Findings { refused: REFUSED.to_owned(), refused_rows, meanwhile, end, kills: kills.len() };
    let verdict = findings.verdict();
    let summary = Summary::new(options, rows::all(&scene.owner).await?.len(), findings, kills);
    println!("\n{}", summary.table());
    if options.json {
        println!("{}", serde_json::to_string(&summary)?);
    }
    Ok(verdict)
}

fn acts(options: &Options) -> Vec<(Duration, Act)> {
    let at = |part: f64| options.writing.mul_f64(part);
    let kills = kills::plan(options).into_iter().map(|(at, victim)| (at, Act::Kill(victim)));
    let mut acts: Vec<_> =
        [(at(REFUSED_FROM), Act::Refuse), (at(REFUSED_UNTIL), Act::Recover)].into_iter().chain(kills).collect();
    acts.sort_by_key(|(at, _)| *at);
    acts
}

/// Counts when nothing moves any more, and has the provider take the number again; then come one more message to it, and the operator.
async fn recover(
    scene: &mut Scene,
    application: &Application,
    view: &mut View,
) -> anyhow::Result<(usize, [Figures; 3])> {
    application.pause(true);
    // Two at least, so that there is an order to be kept.
    let app = scene.app().await?;
    for _ in 0..2 {
        rows::write(&app, REFUSED).await?;
    }
    look::settle(view, async || stands(scene).await, async || present(scene).await).await?;
    let (refused_rows, meanwhile) = (refused_rows(scene).await?, figures(scene).await?);
    scene.provider.decide(scene::takes);
    view.note(&format!("the provider takes {REFUSED} again, and one more message to it is written"));
    let before = scene.accepted(RELAYS[1]).len();
    rows::write(&app, REFUSED).await?;
    look::settle(view, async || Ok(scene.accepted(RELAYS[1]).len() > before), async || present(scene).await).await?;
    for (relay, command) in RELAYS.iter().zip(COMMANDS) {
        view.note(&format!("outbox-relay {}", command.join(" ")));
        let ended = scene.replicas.once(&format!("command-{relay}"), command).await?;
        ensure!(ended.status.success(), "outbox-relay {} failed:\n{}", command.join(" "), ended.output);
    }
    application.pause(false);
    Ok((refused_rows, meanwhile))
}

/// Rows of the number that the provider has not accepted from the relay that writes dead letters: none, once it takes the number.
async fn refused_rows(scene: &Scene) -> anyhow::Result<usize> {
    let accepted = scene.accepted(RELAYS[1]);
    let rows = rows::all(&scene.owner).await?;
    Ok(rows.iter().filter(|row| row.number == REFUSED && !accepted.contains(&row.id)).count())
}

async fn figures(scene: &Scene) -> anyhow::Result<[Figures; 3]> {
    let (listed, rows) = (rows::listed(&scene.owner).await?, rows::all(&scene.owner).await?);
    let mut figures = <[Figures; 3]>::default();
    for ((figures, relay), listed) in figures.iter_mut().zip(RELAYS).zip(listed) {
        *figures = Figures::of(&rows, &scene.accepted(relay), REFUSED, listed);
    }
    Ok(figures)
}

/// Whether one relay has halted, and the others have nothing to send.
async fn stands(scene: &Scene) -> anyhow::Result<bool> {
    let [_, dead_letter, park_key] = figures(scene).await?;
    let refused = refused_rows(scene).await?;
    let both = dead_letter.waiting == 0 && park_key.waiting_others == 0 && park_key.parked == refused;
    Ok(both && rows::is_halted(&scene.owner).await?)
}

async fn settled(scene: &Scene) -> anyhow::Result<bool> {
    Ok(figures(scene).await?.iter().all(|one| one.waiting + one.dead_letters + one.parked == 0))
}

async fn present(scene: &Scene) -> anyhow::Result<Vec<String>> {
    let figures = figures(scene).await?;
    let line = |(relay, one): (&str, &Figures)| {
        format!(
            "{relay:<11} sent {:>5}   waiting {:>5}   dead letters {:>3}   repeated {:>3}   numbers out of order {}",
            one.sent,
            one.waiting,
            one.dead_letters,
            one.repeated,
            one.out_of_order.len()
        )
    };
    let mut lines: Vec<String> = RELAYS.into_iter().zip(&figures).map(line).collect();
    lines.push(scene.replicas.states());
    Ok(lines)
}
