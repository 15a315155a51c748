//! The HTTP intake beside the relays of `run`, and what `check` says of it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::config::Config;
use crate::intake::{self, Intake};
use crate::relay::engine::Engine;
use crate::relay::engine::replicas;
use crate::source::finding::{Finding, Level};
use crate::tokens::Tokens;

/// Well below what makes `/livez` fail.
const BEAT: Duration = Duration::from_secs(10);

/// The intake with its address, not serving yet.
#[derive(Debug)]
pub(super) struct Open {
    listener: TcpListener,
    intake: Intake,
    alone: bool,
}

/// Takes address and tokens, so that what is wrong with them ends the start; none when no intake is configured.
///
/// # Errors
/// A port in use, or a file without a token.
pub(super) async fn open(config: &Config, replica: &str) -> anyhow::Result<Option<Open>> {
    let Some(section) = &config.intake else { return Ok(None) };
    let intake = Intake::new(section, config.postgres.clone(), replicas::intake_application(replica))?;
    if !section.listen.ip().is_loopback() {
        tracing::warn!(listen = %section.listen, "the intake speaks plain HTTP: put TLS in front of it");
    }
    Ok(Some(Open { listener: intake::bind(section).await?, intake, alone: config.relays.is_empty() }))
}

impl Open {
    /// Where it listens.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    /// Answers until the engine stops; what is in flight then, until it is cut.
    pub(super) fn serve(self, engine: &Arc<Engine>) -> JoinHandle<()> {
        let (stop, cut) = (engine.stop.clone().cancelled_owned(), engine.cut.clone().cancelled_owned());
        let Self { listener, intake, alone } = self;
        if alone {
            tokio::spawn(live(Arc::clone(engine)));
        }
        tokio::spawn(async move {
            if let Err(error) = intake::serve(listener, intake, stop, cut).await {
                tracing::error!(%error, "the intake has ended");
            }
        })
    }
}

/// In a process without a relay nothing else shows that it lives.
async fn live(engine: Arc<Engine>) {
    while !engine.stop.is_cancelled() {
        engine.heartbeat.beat();
        tokio::select! {
            () = tokio::time::sleep(BEAT) => {}
            () = engine.stop.cancelled() => {}
        }
    }
}

/// What `check` says of the configured intake.
pub(super) fn findings(config: &Config) -> Vec<Finding> {
    let Some(section) = &config.intake else { return Vec::new() };
    let tokens = match Tokens::new("intake", section.token_file.clone()).verify() {
        Ok(()) => Finding::new(Level::Ok, "intake_tokens", "[intake] token_file holds tokens"),
        Err(error) => Finding::new(Level::Error, "intake_tokens", error.to_string())
            .setting("Write a token into the file, one a line, and let this user read it."),
    };
    let mut findings = vec![tokens];
    if !section.listen.ip().is_loopback() {
        let message = format!(
            "[intake] listens on {} and speaks plain HTTP: tokens and requests can be read on the way",
            section.listen
        );
        let fix = "Put TLS in front of it, and let only that reach the port; or listen on 127.0.0.1.";
        findings.push(Finding::new(Level::Warn, "intake_plain_http", message).setting(fix));
    }
    findings
}
