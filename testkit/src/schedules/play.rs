//! The story: schedules are written, edited and deleted, replicas are killed and start again, then all of them are gone for
//! some seconds, everything settles, and the endpoints are asked what they have.

use std::time::Duration;

use serde::Deserialize;
use tokio::time::Instant;
use tokio_postgres::Client;

use super::judge::{self, Occurrence, Receipt, Truth};
use super::lateness::{self, BEFORE, Excuse, LIMIT, TAKEN_UP};
use super::metronome::Metronome;
use super::scene::Scene;
use super::summary::{Findings, Summary};
use super::timetable::{Done, Edit, Timetable};
use super::{HANGING, HEALTHY, RELAY, rows};
use crate::delivery::Verdict;
use crate::kills::{self, Kill};
use crate::provider::{Answer, Provider, Received};
use crate::view::View;
use crate::{Options, look};
use outbox_relay::position::Timestamp;

/// Between two kills: the first victim is at work again.
const APART: Duration = Duration::from_secs(3);
/// Behind an instant, replicas have something in hand for so long.
const IN_HAND: Duration = Duration::from_millis(200);
/// From the first sign of a replica, what had come before it is worked off.
const WORKED_OFF: Duration = Duration::from_secs(3);

/// What is done to the schedules and to the replicas.
enum Step {
    Edit(Edit),
    Kill(String),
}

/// The play as it goes on.
struct Story<'a> {
    scene: &'a mut Scene,
    view: &'a mut View,
    table: Timetable,
    kills: Vec<Kill>,
    excuses: Vec<Excuse>,
    truth: Truth,
}

/// Everything between the stage's setting and its clearing; the verdict goes to standard output.
pub(super) async fn play(options: &Options, scene: &mut Scene, view: &mut View) -> anyhow::Result<Verdict> {
    scene.begun(options.replicas).await?;
    let app = scene.app().await?;
    let table = Timetable::new(crate::now(), options);
    rows::write(&app, &table).await?;
    view.start();
    view.note(&format!("tenants {} have schedules; the endpoint of {HANGING} never answers", HEALTHY.join(" and ")));
    let metronome = Metronome::start(scene.app().await?);
    let (kills, excuses, truth) = (Vec::new(), Vec::new(), Truth::default());
    let mut story = Story { scene, view, table, kills, excuses, truth };
    let done = story.edits_and_kills(options, &app).await?;
    let (dark, light) = story.darkness(options).await?;
    story.until(table.last.plus(LIMIT)).await?;
    let beats = metronome.stop().await?;

    story.settle().await?;
    let Story { scene, excuses, kills, mut truth, .. } = story;
    truth.expected = table.expected(&done);
    truth.actions = rows::actions(&scene.owner).await?;
    truth.receipts = receipts(&scene.provider);
    let excuses = [excuses, vec![dark_excuse(&truth, dark, light)]].concat();
    let lateness = lateness::judge(&truth, &excuses, &beats);
    let problem = rows::problem(&scene.owner).await?;
    let all = truth.counts(|_| true);
    let impossible = problem.as_ref().is_some_and(|problem| problem.starts_with("never: "));
    let verdict = judge::verdict(&all, &lateness, impossible, dark < table.missed);
    let findings = Findings { verdict, all, lateness, problem, kills, without: light.since(dark) };
    let summary = Summary::new(options, &truth, findings);
    println!("\n{}", summary.table());
    if options.json {
        println!("{}", serde_json::to_string(&summary)?);
    }
    Ok(verdict)
}

impl Story<'_> {
    async fn until(&mut self, at: Timestamp) -> anyhow::Result<()> {
        let end = Instant::now() + at.since(crate::now());
        look::until(self.view, end, async || present(self.scene).await).await
    }

    /// All edits, and kills at random between them.
    async fn edits_and_kills(&mut self, options: &Options, app: &Client) -> anyhow::Result<Done> {
        let table = self.table;
        let mut steps: Vec<_> = Edit::ALL.into_iter().map(|edit| (table.moment(edit), Step::Edit(edit))).collect();
        let mut free = table.first;
        for (at, victim) in kills::plan(options) {
            // While what that second brought is carried out.
            let within = Duration::from_secs(at.as_secs()) + IN_HAND.mul_f64(f64::from(at.subsec_millis()) / 1e3);
            let at = table.first.plus(within).max(free);
            free = at.plus(APART);
            if free < table.dark {
                steps.push((at, Step::Kill(victim)));
            }
        }
        steps.sort_by_key(|(at, _)| *at);
        let mut done = Done::new();
        for (at, step) in steps {
            self.until(at).await?;
            match step {
                Step::Edit(edit) => {
                    done.insert(edit, rows::edit(app, &table, edit).await?);
                    self.view.note(edit.note());
                }
                Step::Kill(drawn) => {
                    let victim = if self.kills.is_empty() { self.busy(drawn).await? } else { drawn };
                    self.kill(&victim).await?;
                    self.scene.replicas.restart(&victim)?;
                }
            }
        }
        Ok(done)
    }

    /// Waits for a replica that has something of a healthy tenant's in hand: one kill at least shall interrupt.
    async fn busy(&self, drawn: String) -> anyhow::Result<String> {
        let patience = Instant::now() + APART;
        while Instant::now() < patience {
            if let Some(replica) = rows::holder(&self.scene.owner).await? {
                return Ok(replica);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(drawn)
    }

    /// Kills it, and notes what it leaves behind.
    async fn kill(&mut self, victim: &str) -> anyhow::Result<()> {
        let pid = self.scene.replicas.kill9(victim).await?;
        let at = crate::now();
        // What it had asked for may still be done by its sessions.
        while rows::connected(&self.scene.owner, victim).await? > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let mut kill = Kill::new(pid, victim, at.since(self.table.first), &[RELAY]);
        for (id, of) in rows::held(&self.scene.owner, victim).await? {
            kill.count(RELAY);
            self.truth.held.insert(id, at);
            self.excuses.push(Excuse { from: at.minus(BEFORE), to: at.plus(TAKEN_UP), of: Some(of) });
        }
        self.view.note(&kill.to_string());
        self.kills.push(kill);
        Ok(())
    }

    /// No replica is there for some seconds; from when to when.
    async fn darkness(&mut self, options: &Options) -> anyhow::Result<(Timestamp, Timestamp)> {
        self.until(self.table.dark).await?;
        let names: Vec<String> = (1..=options.replicas).map(|number| format!("replica-{number}")).collect();
        for name in &names {
            self.kill(name).await?;
        }
        let dark = crate::now();
        self.until(self.table.light).await?;
        let light = crate::now();
        for name in &names {
            self.scene.replicas.restart(name)?;
        }
        self.view.note("all replicas start again");
        Ok((dark, light))
    }

    /// The endpoint of the hanging tenant answers again, and what is open ends.
    async fn settle(&mut self) -> anyhow::Result<()> {
        self.scene.provider.decide(|_| Answer::Accept);
        self.view.note(&format!("the endpoint of {HANGING} answers"));
        let settled = async || Ok(rows::open(&self.scene.owner).await? == 0);
        look::settle(self.view, settled, async || present(self.scene).await).await?;
        for wrong in self.scene.replicas.drain().await? {
            self.view.note(&wrong);
        }
        Ok(())
    }
}

/// From the last kill until a session is at work again and has worked off what came before.
fn dark_excuse(truth: &Truth, dark: Timestamp, light: Timestamp) -> Excuse {
    let first = truth.receipts.iter().map(|one| one.at).filter(|at| *at > light).min();
    Excuse { from: dark.minus(LIMIT), to: first.unwrap_or(light).plus(WORKED_OFF), of: None }
}

/// The body that the relay sends when nothing else is configured.
#[derive(Deserialize)]
struct Body {
    tenant: String,
    schedule: String,
    planned_at: String,
}

/// What the endpoints have got, accepted or not. What cannot be read is of no schedule, and thus nothing that was expected.
fn receipts(provider: &Provider) -> Vec<Receipt> {
    let receipt = |one: Received| {
        let body: Option<Body> = serde_json::from_str(&one.request.body).ok();
        let of = body.and_then(|body| {
            let planned = Timestamp::parse_rfc3339(&body.planned_at).ok()?;
            Some(Occurrence { tenant: body.tenant, schedule: body.schedule, planned })
        });
        let none = Occurrence { tenant: String::new(), schedule: String::new(), planned: Timestamp::NEG_INFINITY };
        let (accepted, key) = (one.is_accepted(), one.request.key);
        let id = key.strip_prefix(RELAY).and_then(|key| key.strip_prefix('/')).unwrap_or_default().to_owned();
        Receipt { of: of.unwrap_or(none), id, at: one.request.at, accepted }
    };
    provider.received().into_iter().map(receipt).collect()
}

async fn present(scene: &Scene) -> anyhow::Result<Vec<String>> {
    let mut lines = rows::lines(&scene.owner).await?;
    lines.push(scene.replicas.states());
    Ok(lines)
}
