//! `outbox-relay run`: the relay itself.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::intake;
use crate::config::{Config, parse_duration};
use crate::cursor::replicas::SQL_SESSION;
use crate::database::{Error, Limits, Session, Sessions};
use crate::health::Latch;
use crate::metrics::exporter::Exporter;
use crate::relay::engine::Engine;
use crate::relay::engine::replicas;
use crate::relay::once::{self, Once};
use crate::relay::{self, supervisor};
use crate::sink::kafka::Cluster;
use crate::telemetry::traces::Traces;
use crate::{admin, metrics, migrate, retention, shutdown};

/// So many sessions at once show whether a pooler is in between; every pool has as many.
const DIRECT: usize = 4;

/// Of the session that compares what was passed with the tables: it reads many rows at a time, and holds nothing up.
const AUDIT: Limits = Limits { statement: Duration::from_secs(30), lock_kill: Duration::from_secs(120) };

/// Arguments of `run`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  outbox-relay --config relay.toml run
  outbox-relay run --relay booking_events          only this relay of the configuration
  outbox-relay run --once --timeout 5m
      relay what is there now, then end; for jobs and tests

Signals:
  SIGTERM, SIGINT, SIGQUIT or SIGHUP (a terminal that closes) ends the open turns within
  [shutdown] grace and exits 0, or 1 when an outcome that a receiver acknowledged could not be
  recorded; a second one exits immediately, SIGHUP not counted. Where SIGHUP or SIGQUIT is
  ignored at the start, as by nohup, it goes on.

With --once, an action that is queued behind another one of its schedule is run, too. One that waits for its next \
attempt is not waited for, nor what is queued behind it.

Exit codes: with --once 1 when a relay is halted or not done in time, a partition that is new to the cursor could not be checked \
in time, or a redriven dead letter is refused again; rows held back are named.")]
pub struct Args {
    /// Relay the rows that are committed now, then end
    #[arg(long)]
    pub once: bool,
    /// How long --once may take
    #[arg(long, value_name = "DURATION", requires = "once", default_value = "60s", value_parser = parse_duration)]
    pub timeout: Duration,
    /// The replica's name in logs and in the database, up to 46 characters of ASCII without blanks; by default the host's name and the
    /// process id
    #[arg(long, value_name = "ID", value_parser = valid_replica_id)]
    pub replica_id: Option<String>,
    /// Only this relay of the configuration; may be given several times
    #[arg(long = "relay", value_name = "NAME")]
    pub relays: Vec<String>,
}

/// It becomes part of `application_name`, which PostgreSQL cuts at 63 bytes and takes only ASCII in.
const LONGEST_ID: usize = 63 - SQL_SESSION.len();

fn valid_replica_id(text: &str) -> Result<String, String> {
    if (1..=LONGEST_ID).contains(&text.len()) && text.chars().all(|c| c.is_ascii_graphic()) {
        Ok(text.to_owned())
    } else {
        Err(format!("write 1 to {LONGEST_ID} printable ASCII characters without blanks"))
    }
}

/// Runs the configured relays until a signal, or once.
///
/// # Errors
/// When the configuration has no such relay (exit code 2), or what makes a start impossible: port in use, refused
/// credentials, a standby, a schema of another version (1).
pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    // A job relays what is there and ends: it takes no requests.
    let intake = config.intake.clone().filter(|_| !args.once);
    let configured = config.relays.iter().map(|relay| relay.relay.clone()).collect();
    let config = Config { intake, ..config }.only(&args.relays)?;
    let relays = config.relays.clone();
    let exporter = Exporter::install(config.phases)?;
    let replica = args.replica_id.unwrap_or_else(replica_id);
    let limits = limits(&relays);
    let cluster = config.kafka.clone().map(|kafka| Arc::new(Cluster::new(kafka)));
    let engine = Engine::new(&config.postgres, limits, replica.clone(), cluster, &relays)?.with_configured(configured);
    let traces = Traces::start(config.telemetry.as_ref(), &replica);
    let engine = Arc::new(engine.with_traces(traces));
    shutdown::watch(engine.stop.clone(), engine.cut.clone(), config.grace).context("cannot catch signals")?;
    let listener = super::admin::listen(&config.admin, args.once).await?;
    let intake = intake::open(&config, &replica).await?;
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        replica,
        postgres = config.postgres.target(),
        admin = %listener.local_addr()?,
        intake = intake.as_ref().and_then(intake::Open::address).map(tracing::field::display),
        cursors = relays.len(),
        "outbox-relay starts"
    );
    let database = engine.readiness.latch("PostgreSQL has not been reached yet");
    let state = super::admin::state(&config, &engine, exporter);
    let admin = tokio::spawn(admin::serve(listener, state, engine.cut.clone().cancelled_owned()));
    let intake = intake.map(|intake| intake.serve(&engine));

    let sessions = Sessions::new(config.postgres.clone(), limits, replicas::application(&replica, &relays));
    let begun = Instant::now();
    let timeout = args.once.then_some(args.timeout);
    if !reach_within(timeout, &engine, &sessions, &database).await? {
        return Ok(ExitCode::SUCCESS); // told to stop before the database was there: nothing was recorded
    }
    database.release();
    let code = if args.once {
        let timeout = args.timeout.saturating_sub(begun.elapsed());
        once::run(Arc::clone(&engine), relays, Once { timeout }).await?
    } else {
        let reading = Sessions::new(config.postgres.clone(), AUDIT, replicas::application(&replica, &relays));
        let audit = relay::audit(Arc::clone(&engine), reading, relays.clone());
        let upkeep = retention::task::run(Arc::clone(&engine), sessions, config.retention, relays.clone());
        tokio::join!(supervisor::run(Arc::clone(&engine), relays), upkeep, audit);
        ExitCode::SUCCESS
    };
    if let Some(intake) = intake {
        intake.await?;
    }
    engine.traces.finish(&engine.cut).await;
    admin.abort();
    ended(&engine, code).await
}

/// The exit code, once nothing runs: a failure if an outcome is not recorded.
async fn ended(engine: &Engine, code: ExitCode) -> anyhow::Result<ExitCode> {
    if let Err(error) = engine.unrecorded.resolve(engine.probe.session(), engine.call_deadline).await {
        tracing::warn!(%error, "cannot find out whether acknowledged rows are recorded as such");
    }
    if engine.unrecorded.reported() {
        tracing::error!("outbox-relay exits; some outcomes are not recorded");
        return Ok(ExitCode::FAILURE);
    }
    tracing::info!("outbox-relay has drained");
    Ok(code)
}

/// Waits for the database, at most for the timeout if there is one; false if stopped first.
async fn reach_within(
    timeout: Option<Duration>,
    engine: &Engine,
    sessions: &Sessions,
    waiting: &Latch,
) -> anyhow::Result<bool> {
    let Some(timeout) = timeout else { return reach(engine, sessions, waiting).await };
    tokio::time::timeout(timeout, reach(engine, sessions, waiting))
        .await
        .map_err(|_| anyhow::anyhow!("PostgreSQL could not be reached within {timeout:?} (--timeout)"))?
}

/// Waits for the database; false if stopped first. What waiting cannot fix is an error.
async fn reach(engine: &Engine, sessions: &Sessions, waiting: &Latch) -> anyhow::Result<bool> {
    let mut backoff = crate::pace::Backoff::new();
    loop {
        match reached(sessions).await {
            Ok(session) => {
                migrate::require(&session).await?;
                return Ok(true);
            }
            Err(error) if hopeless(&error) => return Err(error.into()),
            Err(error) => {
                metrics::set_postgres_up(false);
                let pause = backoff.failed(fastrand::f64());
                tracing::warn!(%error, hint = error.fix(), ?pause, "PostgreSQL cannot be reached; trying again");
                waiting.set_reason(&unreached(&error));
                engine.heartbeat.beat();
                tokio::select! {
                    () = engine.stop.cancelled() => return Ok(false),
                    () = tokio::time::sleep(pause) => {}
                }
            }
        }
    }
}

/// Why PostgreSQL is not reached, for `/readyz`, which anybody can read: a code only. The log has the server and the user.
fn unreached(error: &Error) -> String {
    format!("PostgreSQL has not been reached yet: {}", error.public_code())
}

/// A session, and no pooler in between.
async fn reached(sessions: &Sessions) -> Result<Session, Error> {
    sessions.direct(DIRECT).await?;
    sessions.open().await
}

/// Whether an error at start is one that an operator must fix.
fn hopeless(error: &Error) -> bool {
    error.refused_credentials()
        || matches!(
            error,
            Error::Standby(_) | Error::Pooler(_) | Error::Setting { .. } | Error::Authorities(_) | Error::Tls { .. }
        )
}

/// The sessions' limits: those of the relay with the longest deadline, so that every relay's own chain holds.
#[must_use]
pub fn limits(relays: &[relay::Config]) -> Limits {
    let longest = relays.iter().map(|relay| relay.turn).max_by_key(|turn| turn.deadline);
    longest.map_or(Limits { statement: Duration::from_secs(3), lock_kill: Duration::from_secs(12) }, |turn| Limits {
        statement: turn.call_deadline(),
        lock_kill: turn.lock_kill(),
    })
}

fn replica_id() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    shortened(&format!("{}-{}", host.trim(), std::process::id()))
}

/// The end of a long id: what comes last in the name of a pod is its own.
fn shortened(id: &str) -> String {
    let printable: String = id.chars().map(|c| if c.is_ascii_graphic() { c } else { '_' }).collect();
    printable[printable.len().saturating_sub(LONGEST_ID)..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_tells_how_long_an_id_may_be() {
        let command = <Args as clap::Args>::augment_args(clap::Command::new("run"));
        let help = command.clone().term_width(1_000).render_help().to_string();
        assert!(help.contains(&format!("up to {LONGEST_ID} characters")), "{help}");
    }

    #[test]
    fn long_default_id_keeps_its_end_and_is_valid() {
        let id = shortened(&format!("{}-7d9c6b5f4-x2x9q-1", "outbox".repeat(9)));
        assert!(id.ends_with("-7d9c6b5f4-x2x9q-1") && id.len() == LONGEST_ID, "{id}");
        assert_eq!(valid_replica_id(&id).as_deref(), Ok(id.as_str()));
        assert_eq!(shortened("pod-1"), "pod-1");
    }
}
