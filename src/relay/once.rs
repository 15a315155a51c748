//! `run --once`: publish what is there, then end.
//!
//! The target of each relay is its first horizon. It is done when no row lies between its cursor's position and the
//! target, by any replica, a turn has looked at each relation of the table that is new to the cursor, and no dead letter is left
//! that an operator wants sent again. Rows that the horizon holds back are not waited for; the sessions that hold them back are logged.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cursor::{self, dead_letter};
use crate::database::{Error, Session};
use crate::position::Timestamp;
use crate::relay::Config;
use crate::relay::engine::lag;
use crate::relay::engine::{Engine, Progress};
use crate::relay::setup::fingerprint::fingerprint;
use crate::relay::setup::prepare;
use crate::relay::supervisor;
use crate::source::{self, shape::Shape};

const LOOK: Duration = Duration::from_millis(50);

/// Options of `run --once`.
#[derive(Clone, Copy, Debug)]
pub struct Once {
    /// How long to try.
    pub timeout: Duration,
}

/// What is left of a relay's work.
#[derive(Debug)]
struct Target {
    config: Config,
    fingerprint: String,
    /// The database's clock when this process began.
    begun: Timestamp,
    shape: Option<Arc<Shape>>,
    horizon: Option<Timestamp>,
    /// Dead letters that are still to be sent again.
    letters: i64,
    /// Dead letters, or rows of released keys, are still to be sent again.
    resends: bool,
    /// A partition that is waited for.
    away: Option<String>,
    /// A partition that no turn has looked at: the cursor may have passed rows of it.
    unchecked: Option<String>,
    /// An operator's change waits to be carried out.
    change: bool,
    /// Those that were to be sent again when this process began.
    redriven: Vec<i64>,
    /// How many of them were refused again.
    refused_again: i64,
    done: bool,
    failed: Option<String>,
}

/// Runs the relays until each has reached its target: exit code 0, or 1 when one is halted, a redriven dead letter is
/// refused again, or the time is up.
///
/// # Errors
/// The database's at the start; later ones are waited out until the time is up.
pub async fn run(engine: Arc<Engine>, relays: Vec<Config>, options: Once) -> anyhow::Result<ExitCode> {
    let begun = Instant::now();
    let session = engine.probe.session().await?;
    let clock: Timestamp = session.query_one("SELECT pg_catalog.clock_timestamp()", &[]).await?.try_get(0)?;
    engine.run_once(clock);
    let mut targets: Vec<Target> = Vec::with_capacity(relays.len());
    for config in &relays {
        targets.push(Target {
            fingerprint: fingerprint(config),
            config: config.clone(),
            begun: clock,
            shape: None,
            horizon: None,
            letters: 0,
            resends: false,
            away: None,
            unchecked: None,
            change: false,
            redriven: dead_letter::wanted_ids(&session, &config.name).await?,
            refused_again: 0,
            done: false,
            failed: None,
        });
    }
    drop(session);
    let running = tokio::spawn(supervisor::run(Arc::clone(&engine), relays));
    while !engine.stop.is_cancelled() && begun.elapsed() < options.timeout {
        for target in targets.iter_mut().filter(|target| !target.done && target.failed.is_none()) {
            if let Err(error) = look(&engine, target).await {
                tracing::debug!(cursor = target.config.name, %error, "cannot look yet");
            }
        }
        if targets.iter().all(|target| target.done || target.failed.is_some()) {
            break;
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = engine.stop.cancelled() => {}
        }
    }
    engine.stop.cancel();
    running.await?;
    Ok(verdict(&engine, &targets, options.timeout))
}

impl Target {
    /// What an operator has redriven in vain.
    fn refused(&self) -> String {
        let letters = match self.refused_again {
            1 => "1 redriven dead letter was".to_owned(),
            letters => format!("{letters} redriven dead letters were"),
        };
        format!("{letters} refused again: `outbox-relay dead-letter list --cursor {}`", self.config.name)
    }

    /// What is left when the time is up.
    fn left(&self) -> String {
        match (&self.config.source, self.letters) {
            (source::Config::Stream(_), _) if self.change => {
                format!("an operator's change still waits: `outbox-relay cursor why {}`", self.config.name)
            }
            (source::Config::Stream(_), 0) if self.resends => {
                format!("rows of released keys are still to be sent: `outbox-relay cursor why {}`", self.config.name)
            }
            (source::Config::Stream(_), 0) => self.left_of_table(),
            (source::Config::Stream(_), 1) => "1 dead letter is still to be sent again".to_owned(),
            (source::Config::Stream(_), letters) => format!("{letters} dead letters are still to be sent again"),
            (source::Config::Pending(_) | source::Config::Requests(_) | source::Config::Schedule(_), _) => {
                "due rows are still waiting: the relay is paused, or needs longer".to_owned()
            }
        }
    }

    /// What of its table is left when the time is up.
    fn left_of_table(&self) -> String {
        let why = format!("`outbox-relay cursor why {}`", self.config.name);
        if let Some(partition) = &self.away {
            return format!("partition {partition} is detached, and may hold rows that were not delivered: {why}");
        }
        if let Some(partition) = &self.unchecked {
            return format!("{partition} is new to the cursor, and no turn has checked its rows yet: {why}");
        }
        "rows below the first horizon are still waiting".to_owned()
    }
}

async fn look(engine: &Engine, target: &mut Target) -> Result<(), Error> {
    let session = engine.probe.session().await?;
    if let Some(message) = halted(&session, target).await? {
        target.failed = Some(message);
        return Ok(());
    }
    if !engine.is_ready(&target.config.name) {
        return Ok(());
    }
    if !matches!(target.config.source, source::Config::Stream(_)) {
        target.done = engine.progress(&target.config.name, |_| ()).done;
        return Ok(());
    }
    if target.horizon.is_none() {
        let Ok(shape) = prepare::shape(&session, &target.config.source).await? else { return Ok(()) };
        let sighting = engine.watcher.scan(&shape).await?;
        if sighting.horizon.at.is_finite() {
            for held in &sighting.horizon.held_by {
                let holder = &held.holder;
                tracing::info!(
                    cursor = target.config.name,
                    pid = holder.pid,
                    application = holder.application,
                    "rows above this writer's begin are held back and not waited for"
                );
            }
            target.horizon = Some(sighting.horizon.at);
        }
        target.shape = Some(Arc::new(shape).for_shard(target.config.shard.as_ref()));
    }
    let (Some(shape), Some(horizon)) = (&target.shape, target.horizon) else { return Ok(()) };
    // Asked before the standing: a late row that a turn records in between is a letter to be sent in the standing, and none in
    // this answer. The other way round it is in neither.
    let late = source::sweep::with_late_rows(&session, shape, &[&target.config.name]).await?;
    let standings = cursor::standings(&session, &[&target.config.name]).await?;
    let Some(standing) = standings.first() else { return Ok(()) };
    let below = horizon.minus(Duration::from_micros(1));
    // Rows in flight are passed already, and come back when they provably were not sent.
    let position = standing.position.as_ref();
    target.resends = standing.redrive;
    // For the message only: a letter may have been sent since, and rows behind it not.
    target.letters = if standing.redrive { dead_letter::wanted(&session, &target.config.name).await? } else { 0 };
    target.change = standing.change;
    let away = async || source::family::detached(&***session, shape, &target.config.name, position).await;
    target.away = away().await?;
    target.unchecked = source::family::unchecked(&***session, shape, &target.config.name, position).await?;
    let done = !standing.in_flight
        && !standing.change
        && !standing.redrive
        && late.is_empty()
        && target.away.is_none()
        && target.unchecked.is_none()
        && lag::measure(&session, shape, position, below).await?.rows == 0;
    if !done {
        return Ok(());
    }
    // What is found since the first of these questions: a turn halts at what it leaves, and a partition may have gone.
    target.failed = halted(&session, target).await?;
    target.away = away().await?;
    if !target.redriven.is_empty() {
        target.refused_again = dead_letter::refused_again(&session, &target.redriven).await?;
    }
    target.done = target.failed.is_none() && target.away.is_none();
    Ok(())
}

/// Why the relay is halted, if it is: for replicas of this configuration, or found out since this process began. Other halts are
/// about to end, because the relay is checked again.
async fn halted(session: &Session, target: &Target) -> Result<Option<String>, Error> {
    let halt = cursor::halt(session, &target.config.name).await?;
    let halt = halt.filter(|halt| halt.scope.counts_for(&target.fingerprint) || halt.reported_at > target.begun);
    Ok(halt.map(|halt| halt.message))
}

fn verdict(engine: &Engine, targets: &[Target], timeout: Duration) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for target in targets {
        let name = &target.config.name;
        match &target.failed {
            Some(error) => {
                code = ExitCode::FAILURE;
                tracing::error!(cursor = name, error, "relay is halted");
            }
            None if engine.progress(name, |_| ()).failed > 0 => {
                code = ExitCode::FAILURE;
                let Progress { sent, failed, .. } = engine.progress(name, |_| ());
                tracing::error!(
                    cursor = name,
                    sent,
                    failed,
                    "rows could not be sent, or not be marked: see the lines above"
                );
            }
            None if engine.registry.waits_for(name).is_some() => {
                code = ExitCode::FAILURE;
                let reason = engine.registry.waits_for(name);
                tracing::error!(cursor = name, ?timeout, reason, "relay has not run");
            }
            None if !target.done => {
                code = ExitCode::FAILURE;
                tracing::error!(cursor = name, ?timeout, "{}", target.left());
            }
            None if target.refused_again > 0 => {
                code = ExitCode::FAILURE;
                tracing::error!(cursor = name, "{}", target.refused());
            }
            None if !matches!(target.config.source, source::Config::Stream(_)) => {
                let sent = engine.progress(name, |_| ()).sent;
                tracing::info!(cursor = name, sent, "nothing that is due is left");
            }
            None => tracing::info!(cursor = name, "nothing left to relay"),
        }
    }
    code
}
