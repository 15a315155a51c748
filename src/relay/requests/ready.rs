//! What must be true before requests are worked off: known templates, a sink, a cursor row.

use std::sync::Arc;

use crate::cursor::ledger;
use crate::database::{Error, Session, quote_literal};
use crate::message::Field;
use crate::metrics::{CursorMetrics, PendingMetrics};
use crate::relay::engine::Engine;
use crate::relay::prepare::{self, Seat, Unready};
use crate::relay::{Config, sinks};
use crate::sink::{self, Sink};
use crate::source::Requests;
use crate::source::finding::{Finding, Level};
use crate::source::requests::{Which, look_sql, take_sql};

/// A relay of requests that has passed its checks.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) config: Config,
    pub(super) requests: Requests,
    pub(super) sink: Sink,
    pub(super) look_sql: String,
    pub(super) take_sql: String,
    pub(super) interrupted_sql: String,
    pub(super) seat: Seat,
    pub(super) metrics: CursorMetrics,
    pub(super) numbers: PendingMetrics,
}

pub(super) async fn ready(
    engine: &Arc<Engine>,
    config: &Config,
    requests: &Requests,
) -> Result<Result<Ready, Unready>, Error> {
    let session = engine.probe.session().await?;
    let sink = match sinks::make(engine, config, sinks::Known::of_due(false)).await {
        Ok(sink) => sink,
        Err(unready) => return Ok(Err(unready)),
    };
    if let Err(unready) = known(&session, config, requests).await? {
        return Ok(Err(unready));
    }
    // The database's own numbers of its tables are the same for all its life: the ledger is made by a migration.
    let root: u32 = session.query_one("SELECT 'outbox.request'::regclass::oid", &[]).await?.try_get(0)?;
    let seat = match prepare::seat(&session, config, root).await? {
        Ok(seat) => seat,
        Err(unready) => return Ok(Err(unready)),
    };
    let once = engine.once().is_some();
    Ok(Ok(Ready {
        look_sql: look_sql(once),
        take_sql: take_sql(Which::due(once), sink.fields()),
        interrupted_sql: take_sql(Which::Interrupted, sink.fields()),
        metrics: CursorMetrics::new(&config.name, config.sink.kind()),
        numbers: PendingMetrics::new(&config.name),
        config: config.clone(),
        requests: requests.clone(),
        sink,
        seat,
    }))
}

/// Makes the relay's templates known, so that they can be asked for.
async fn known(session: &Session, config: &Config, requests: &Requests) -> Result<Result<(), Unready>, Error> {
    let Some((template, other)) = ledger::register(session, &config.name, &requests.templates).await? else {
        return Ok(Ok(()));
    };
    let hint = format!(
        "Give it another name in one of them, or hand it over: UPDATE outbox.template SET relay = '{}' WHERE name = '{}';",
        config.name,
        template.replace('\'', "''")
    );
    Ok(Err(Unready::wrong("template_taken", format!("template {template} belongs to relay {other}"), hint)))
}

/// What is to be said of templates: another relay's, no longer configured ones.
pub(in crate::relay) async fn findings(
    session: &Session,
    relay: &str,
    requests: &Requests,
) -> Result<Vec<Finding>, Error> {
    let mut findings = Vec::new();
    for (name, owner) in ledger::templates(session, relay, &requests.templates).await? {
        findings.push(if owner == relay {
            Finding::new(
                Level::Warn,
                "template_unused",
                format!("template {name} can be requested, and is not configured any more"),
            )
            .sql(format!("DELETE FROM outbox.template WHERE name = {};", quote_literal(&name)))
        } else {
            Finding::new(Level::Error, "template_taken", format!("template {name} belongs to relay {owner}"))
                .setting("Give it another name in one of the two relays.")
        });
    }
    Ok(findings)
}

/// The statements that read requests, for a check that prepares them.
pub(in crate::relay) fn statements(fields: &[Field]) -> Vec<String> {
    vec![look_sql(false), take_sql(Which::Due, fields), take_sql(Which::Interrupted, fields)]
}

/// For how long the receiver remembers an idempotency key, as far as is configured.
pub(super) fn key_memory(sink: &sink::Config) -> Option<std::time::Duration> {
    match sink {
        sink::Config::Http(http) => http.once.key_memory,
        sink::Config::Webhook(webhook) => webhook.request.once.key_memory,
        sink::Config::Kafka(_)
        | sink::Config::Sms(_)
        | sink::Config::Email(_)
        | sink::Config::Sql(_)
        | sink::Config::Stdout(_) => None,
    }
}
