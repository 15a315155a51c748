//! The listener of probes, metrics and the status page beside the relays of `run`, and what `check` says of it.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;

use crate::admin::{self, Config as Section, Database, StatusPage};
use crate::config::Config;
use crate::database::Sessions;
use crate::listener::BindError;
use crate::metrics::exporter::Exporter;
use crate::relay::engine::Engine;
use crate::source::finding::{Finding, Level};

/// Takes the address, and the tokens, so that what is wrong with them ends the start.
///
/// # Errors
/// A port in use, or a file without a token.
pub(super) async fn listen(section: &Section, once: bool) -> anyhow::Result<TcpListener> {
    if let Some(tokens) = section.tokens() {
        tokens.verify()?;
    }
    Ok(bind(section, once).await?)
}

async fn bind(section: &Section, once: bool) -> Result<TcpListener, BindError> {
    match admin::bind(section).await {
        // A job is not kept from its work by another one, or by a replica beside it.
        Err(error) if once => {
            tracing::warn!(%error, "no probes and metrics at that address: this run listens on any free port of 127.0.0.1");
            admin::bind(&Section { listen: SocketAddr::from(([127, 0, 0, 1], 0)), ..section.clone() }).await
        }
        bound => bound,
    }
}

/// What is shown there. The status page has sessions of its own, named as those of a verb: a replica is told by others.
pub(super) fn state(config: &Config, engine: &Engine, exporter: Exporter) -> admin::State {
    let limits = super::run::limits(&config.relays);
    let sessions = || Sessions::new(config.postgres.clone(), limits, "outbox-relay page".to_owned());
    let database = Database::new(sessions, limits, config.relays.clone());
    let configured = config.relays.iter().map(|relay| relay.name.clone()).collect();
    admin::State {
        heartbeat: Arc::clone(&engine.heartbeat),
        readiness: engine.readiness.clone(),
        exporter,
        page: Some(StatusPage::new(Box::new(database), engine.replica.clone(), configured)),
        tokens: config.admin.tokens(),
        token_for_metrics: config.admin.token_for_metrics,
        ending: engine.stop.clone(),
    }
}

/// What `check` says of it.
pub(super) fn findings(section: &Section) -> Vec<Finding> {
    match section.tokens().map(|tokens| tokens.verify()) {
        Some(Ok(())) => vec![Finding::new(Level::Ok, "admin_tokens", "[admin] token_file holds tokens")],
        Some(Err(error)) => {
            let fix = "Write a token into the file, one a line, and let this user read it.";
            vec![Finding::new(Level::Error, "admin_tokens", error.to_string()).setting(fix)]
        }
        None if !section.listen.ip().is_loopback() => {
            let message = format!("[admin] listens on {} and shows the status page without a token", section.listen);
            let fix =
                "Set [admin] token_file, or let only probes and Prometheus reach the port; or listen on 127.0.0.1.";
            vec![Finding::new(Level::Warn, "admin_free", message).setting(fix)]
        }
        None => Vec::new(),
    }
}
