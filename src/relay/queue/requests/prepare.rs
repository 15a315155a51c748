//! What must be true before requests are worked off: known templates, a sink, a cursor row.

use std::sync::Arc;

use crate::database::{Error, Session, quote_literal};
use crate::jobs::ledger;
use crate::message::Field;
use crate::metrics::{CursorMetrics, PendingMetrics};
use crate::relay::Config;
use crate::relay::engine::Engine;
use crate::relay::engine::not_ready::Unready;
use crate::relay::engine::replicas::fleet;
use crate::relay::queue::batch_size::BatchSize;
use crate::relay::queue::prepared;
use crate::relay::setup::prepare::{self, Seat};
use crate::relay::setup::renamed;
use crate::relay::setup::sinks;
use crate::sink::{self, Sink};
use crate::source::Requests;
use crate::source::finding::{Finding, Level};
use crate::source::lane::{Lanes, Reach};
use crate::source::requests::{Which, lane_interrupted_sql, lane_look_sql, lane_take_sql, look_sql, take_sql};

/// A relay of requests that has passed its checks.
#[derive(Debug)]
pub(super) struct PreparedRequests {
    pub(super) config: Config,
    pub(super) requests: Requests,
    pub(super) sink: Sink,
    pub(super) look_sql: String,
    /// One after the other.
    pub(super) take_sql: Vec<String>,
    pub(super) interrupted_sql: String,
    pub(super) seat: Seat,
    pub(super) metrics: CursorMetrics,
    pub(super) numbers: PendingMetrics,
    /// How many requests a claim asks for at most.
    pub(super) size: BatchSize,
}

prepared!(PreparedRequests);

pub(super) async fn prepare(
    engine: &Arc<Engine>,
    config: &Config,
    requests: &Requests,
) -> Result<Result<PreparedRequests, Unready>, Error> {
    let session = engine.probe.session().await?;
    let sink = match sinks::make(engine, config, sinks::KnownTable::of_due(false)).await {
        Ok(sink) => sink,
        Err(unready) => return Ok(Err(unready)),
    };
    // Before its templates are found to be another relay's: they are also when it was renamed.
    let identity = prepare::identity(&session, config).await?;
    if let Some(unready) = renamed::refusal(engine, &session, config, &identity).await? {
        return Ok(Err(unready));
    }
    if let Err(unready) = known(&session, config, requests).await? {
        return Ok(Err(unready));
    }
    // The database's own numbers of its tables are the same for all its life: the ledger is made by a migration.
    let root: u32 = session.query_one("SELECT 'outbox.request'::regclass::oid", &[]).await?.try_get(0)?;
    let seat = match prepare::seat(engine, &session, config, root).await? {
        Ok(seat) => seat,
        Err(unready) => return Ok(Err(unready)),
    };
    let once = engine.once().is_some();
    Ok(Ok(PreparedRequests {
        look_sql: look_sql(once),
        take_sql: Which::due(once).iter().map(|which| take_sql(*which, sink.fields())).collect(),
        interrupted_sql: match &requests.lanes {
            Some(lanes) => lane_interrupted_sql(lanes, sink.fields()),
            None => take_sql(Which::Interrupted, sink.fields()),
        },
        metrics: CursorMetrics::new(&config.name, config.sink.kind()).with_rate(sink.min_interval().is_some()),
        numbers: PendingMetrics::new(&config.name),
        size: BatchSize::default(),
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
    let over = ledger::hand_over(&other, &config.name, std::slice::from_ref(&template));
    let hint = format!("Give it another name in one of them; or hand it over: {over}");
    Ok(Err(Unready::wrong("template_taken", format!("template {template} belongs to relay {other}"), hint)))
}

/// What is to be said of requests that no relay of this configuration works off.
pub(in crate::relay) async fn orphans(session: &Session, relays: &[String]) -> Result<Vec<Finding>, Error> {
    let left = ledger::orphans(session, relays).await?;
    Ok(left.into_iter().map(|(relay, requests)| {
        let more = if requests >= ledger::MOST_ORPHANS { " or more" } else { "" };
        let (noun, pronoun) = if requests == 1 { ("request waits", "it") } else { ("requests wait", "them") };
        let message = format!("{requests}{more} {noun} for relay {relay}, which this configuration does not have");
        let old = quote_literal(&relay);
        let hint = format!(
            "Run that relay, here or elsewhere; or hand {pronoun} over, to the relay whose name you put for NEW: UPDATE outbox.request \
             SET relay = 'NEW' WHERE relay = {old} AND status IN ('pending', 'processing'); or give {pronoun} up: `outbox-relay request \
             discard --relay {relay}`."
        );
        Finding::new(Level::Warn, "requests_orphaned", message).setting(hint)
    }).collect())
}

/// What is to be said of templates: another relay's, no longer configured ones. `configured` are the names of all relays.
pub(in crate::relay) async fn findings(
    session: &Session,
    relay: &str,
    requests: &Requests,
    configured: &[String],
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
            let fix = match configured.contains(&owner) || !fleet(session).await?.workers(&[&owner]).is_empty() {
                true => "Give it another name in one of the two relays.".to_owned(),
                false => format!("If relay {owner} was renamed: `outbox-relay cursor rename {owner} {relay}`."),
            };
            let over = ledger::hand_over(&owner, relay, std::slice::from_ref(&name));
            let message = format!("template {name} belongs to relay {owner}");
            Finding::new(Level::Error, "template_taken", message).setting(format!("{fix} Or hand it over: {over}"))
        });
    }
    Ok(findings)
}

/// The statements that read requests, for a check that prepares them.
pub(in crate::relay) fn statements(fields: &[Field], lanes: Option<&Lanes>) -> Vec<String> {
    if let Some(lanes) = lanes {
        let take = lane_take_sql(lanes, fields, Reach { jobs: 1, probes: true });
        return vec![lane_look_sql(lanes, 1), take, lane_interrupted_sql(lanes, fields)];
    }
    let takes = [Which::Due, Which::DueFirst, Which::DueAgain, Which::Interrupted];
    let takes = takes.into_iter().map(|which| take_sql(which, fields));
    [look_sql(false), look_sql(true)].into_iter().chain(takes).collect()
}

/// For how long the receiver remembers an idempotency key, or a message may be repeated to it, as far as is configured.
pub(super) fn key_memory(sink: &sink::Config) -> Option<std::time::Duration> {
    match sink {
        sink::Config::Http(http) => http.once.key_memory,
        sink::Config::Webhook(webhook) => webhook.request.once.key_memory,
        sink::Config::Sms(sms) => sms.key_memory,
        sink::Config::Email(email) => email.key_memory,
        sink::Config::Custom(custom) => custom.description.key_memory,
        sink::Config::Kafka(_) | sink::Config::Sql(_) | sink::Config::Stdout(_) | sink::Config::Command(_) => None,
    }
}
