//! `run`: the story of a relay process.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;

use crate::config::Config;
use crate::database::{Error, Limits, Sessions};
use crate::relay::engine::Engine;
use crate::relay::once::{self, Once};
use crate::relay::{self, supervisor};
use crate::sink::kafka::Cluster;
use crate::{admin, metrics, migrate, shutdown};

/// Arguments of `run`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Publish what is there now, then exit: 0 when every relay reached its first horizon, 1 otherwise
    #[arg(long)]
    pub once: bool,
    /// With --once: how long to try
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = humantime::parse_duration, requires = "once")]
    pub timeout: Duration,
    /// What this replica calls itself in locks, metrics and `status` [default: host name and process id]
    #[arg(long, value_name = "ID", env = "OUTBOX_RELAY_REPLICA_ID")]
    pub replica_id: Option<String>,
    /// Run only this relay (may be given several times)
    #[arg(long, value_name = "NAME")]
    pub relay: Vec<String>,
}

/// Runs the configured relays until a signal comes.
///
/// # Errors
/// What makes a start impossible: port in use, refused credentials, a standby, a schema of another version.
pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    let relays = chosen(&config, &args.relay)?;
    let recorder = metrics::install()?;
    let replica = args.replica_id.unwrap_or_else(replica_id);
    let limits = limits(&relays);
    let cluster = config.kafka.clone().map(|kafka| {
        let timeout = relays.iter().map(|relay| relay.turn.message_timeout()).min().unwrap_or(Duration::from_secs(6));
        Arc::new(Cluster::new(kafka, timeout))
    });
    let engine = Arc::new(Engine::new(&config.postgres, limits, replica.clone(), cluster)?);
    shutdown::watch(engine.stop.clone(), engine.cut.clone(), config.shutdown_grace)
        .context("cannot catch signals")?;
    let listener = admin::bind(&config.admin).await?;
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        replica,
        postgres = config.postgres.target(),
        admin = %listener.local_addr()?,
        relays = relays.len(),
        "outbox-relay starts"
    );
    let state = admin::State::new(recorder, Arc::clone(&engine.heartbeat), Arc::clone(&engine.readiness));
    let admin = tokio::spawn(admin::serve(listener, state, engine.cut.child_token()));

    let sessions = Sessions::new(config.postgres.clone(), limits, format!("outbox-relay/{replica}"));
    if !reach(&engine, &sessions).await? {
        return Ok(ExitCode::SUCCESS); // told to stop before the database was there
    }
    let code = if args.once {
        once::run(Arc::clone(&engine), relays, Once { timeout: args.timeout }).await?
    } else {
        supervisor::run(Arc::clone(&engine), relays).await;
        ExitCode::SUCCESS
    };
    tracing::info!("outbox-relay has drained");
    admin.abort();
    Ok(code)
}

/// Waits for the database; false when told to stop first. What no waiting mends is an error.
async fn reach(engine: &Engine, sessions: &Sessions) -> anyhow::Result<bool> {
    let mut backoff = crate::pace::Backoff::new();
    loop {
        match sessions.open().await {
            Ok(session) => {
                migrate::require(&session).await?;
                return Ok(true);
            }
            Err(error) if hopeless(&error) => return Err(error.into()),
            Err(error) => {
                let pause = backoff.failed(fastrand::f64());
                tracing::warn!(%error, ?pause, "PostgreSQL cannot be reached; trying again");
                engine.unreachable(&error);
                engine.heartbeat.beat();
                tokio::select! {
                    () = engine.stop.cancelled() => return Ok(false),
                    () = tokio::time::sleep(pause) => {}
                }
            }
        }
    }
}

/// Whether an error at start is one that an operator must mend.
fn hopeless(error: &Error) -> bool {
    error.refused_credentials()
        || matches!(error, Error::Standby(_) | Error::Setting { .. } | Error::Authorities(_))
}

fn chosen(config: &Config, names: &[String]) -> anyhow::Result<Vec<relay::Config>> {
    if names.is_empty() {
        return Ok(config.relays.clone());
    }
    names
        .iter()
        .map(|name| {
            let known = || config.relays.iter().map(|relay| relay.name.as_str()).collect::<Vec<_>>().join(", ");
            config
                .relays
                .iter()
                .find(|relay| relay.name == *name)
                .cloned()
                .ok_or_else(|| anyhow::anyhow!("--relay {name}: no such relay is configured; there are: {}", known()))
        })
        .collect()
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
    format!("{}-{}", host.trim(), std::process::id())
}
