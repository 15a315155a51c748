//! What a rollout of this configuration would do: a relay's cursors are compared with those that are there.

use tokio_postgres::error::SqlState;

use crate::cursor::shards::strangers;
use crate::cursor::{self, RelayFacts, Standing, standings};
use crate::database::{Error, Session};
use crate::position::{Position, Timestamp};
use crate::relay::engine::lag;
use crate::relay::engine::lag::Lag;
use crate::relay::engine::not_ready::{RENAMED, Unready};
use crate::relay::inspect::waiting_rows;
use crate::relay::setup::fingerprint::fingerprint;
use crate::relay::setup::prepare;
use crate::relay::setup::renamed::{self, Twin};
use crate::relay::{Config, Start};
use crate::source;
use crate::source::finding::{Finding, Level};
use crate::source::shape::Shape;

/// What is found of one relay's cursors, which are its shards; `configured` are the names of all relays. A table that cannot
/// be read has no `shape`.
pub(super) async fn findings(
    session: &Session,
    shards: &[&Config],
    configured: &[String],
    shape: Option<&Shape>,
) -> Result<Vec<Finding>, Error> {
    let Some(first) = shards.first() else { return Ok(Vec::new()) };
    let identity = prepare::identity(session, first).await?;
    if let Some(other) = strangers(session, &first.relay, &identity).await?.first() {
        let unready = Unready::other_shards(&first.relay, &other.name, &other.identity, &identity);
        return Ok(refused("shards_changed", unready).into_iter().collect());
    }
    let names: Vec<&str> = shards.iter().map(|shard| shard.name.as_str()).collect();
    let standings = standings(session, &names).await?;
    let mut findings = Vec::new();
    for shard in shards {
        match standings.iter().find(|standing| standing.name == shard.name) {
            Some(standing) => findings.extend(existing(session, shard, standing, &identity, shape).await?),
            None if shard.is_first_shard() => {
                findings.push(missing(session, shard, configured, &identity, shape).await?)
            }
            None => {}
        }
    }
    Ok(findings)
}

/// What a cursor that is there says to this configuration.
async fn existing(
    session: &Session,
    config: &Config,
    standing: &Standing,
    identity: &str,
    shape: Option<&Shape>,
) -> Result<Option<Finding>, Error> {
    let relations = shape.map(|shape| shape.descendants.clone()).unwrap_or_default();
    let facts = RelayFacts { identity, root: shape.map_or(0, |shape| shape.root), relations: &relations };
    if let Some(other) = cursor::foreign_identity(session, &config.name, facts).await? {
        return Ok(refused("identity_changed", Unready::foreign(&config.name, &other, identity)));
    }
    if standing.halted.is_none() {
        return Ok(None);
    }
    let Some(halt) = cursor::halt(session, &config.name).await? else { return Ok(None) };
    let name = &config.name;
    let halted = format!("cursor {name} is halted: {} {}: {}", halt.class, halt.code, halt.message);
    let cause = format!("Fix the cause: `outbox-relay cursor why {name}`");
    // No error: a pod that restarts, or brings the configuration that ends the halt, would be kept from starting.
    let (after, fix) = if halt.scope.counts_for(&fingerprint(config)) {
        let resume = format!("{cause}; then run `outbox-relay cursor resume {name}`.");
        let own = "it was halted under this configuration, and stays so";
        let all = "an operator must decide: no configuration ends the halt";
        (if halt.scope.is_for_all() { all } else { own }, resume)
    } else if halt.scope.is_check() {
        ("the halt ends when the relay passes its checks", format!("{cause}. No resume is needed."))
    } else {
        let start = "Start a replica with this configuration. No resume is needed.";
        ("another configuration, as this one is, ends the halt", start.to_owned())
    };
    Ok(Some(Finding::new(Level::Warn, "cursor_halted", format!("{halted}; {after}")).setting(fix)))
}

/// What the first run of a relay without a cursor would do.
async fn missing(
    session: &Session,
    config: &Config,
    configured: &[String],
    identity: &str,
    shape: Option<&Shape>,
) -> Result<Finding, Error> {
    let relay = &config.relay;
    let waiting = waiting(session, config, shape).await?;
    let sends = waiting.map_or_else(
        || "how many rows the first run sends cannot be counted".to_owned(),
        |lag| {
            let rows = if lag.rows == 1 { "row" } else { "rows" };
            format!("the first run sends {}{} {rows}", lag.rows, if lag.capped { "+" } else { "" })
        },
    );
    let streams = matches!(config.source, source::Config::Stream(_));
    if let Some(found) = renamed::twins(session, config, configured, identity).await?.first() {
        let Twin { relay: twin, has, .. } = found;
        let skips = match config.start {
            Start::Now if streams => format!(", and skips those after the position of {twin}"),
            _ => String::new(),
        };
        let message = format!(
            "no cursor {relay}: {sends}{skips}. Cursor {twin} has {has}, and no relay here: was the relay renamed?"
        );
        return Ok(Finding::new(Level::Error, RENAMED, message).setting(renamed::hint(config, found)));
    }
    let message = format!("no cursor {relay} yet: {sends}");
    Ok(match waiting {
        Some(lag) if lag.rows == 0 => Finding::new(Level::Ok, "cursor_new", message),
        _ if streams => Finding::new(Level::Warn, "cursor_new", message)
            .setting(format!("To begin elsewhere, first run `outbox-relay cursor create {relay} --now`.")),
        _ => Finding::new(Level::Warn, "cursor_new", message)
            .setting("To send fewer rows, narrow `where` in the relay's source, or mark the others as sent."),
    })
}

/// What waits for the first run; none where that cannot be counted.
async fn waiting(session: &Session, config: &Config, shape: Option<&Shape>) -> Result<Option<Lag>, Error> {
    if !matches!(config.source, source::Config::Stream(_)) {
        return waiting_rows::of_due_work(session, config).await;
    }
    let Some(shape) = shape else { return Ok(None) };
    let now: Timestamp = session.query_one("SELECT pg_catalog.clock_timestamp()", &[]).await?.try_get(0)?;
    let position = match config.start {
        Start::Beginning => None,
        Start::At(created_at) => Some(Position { created_at, id: None }),
        Start::Now => Some(Position { created_at: now.plus(std::time::Duration::from_micros(1)), id: None }),
    };
    let all = Shape { shard: None, ..shape.clone() };
    match lag::measure(session, &all, position.as_ref(), now).await {
        Ok(lag) => Ok(Some(lag)),
        // Without an index on a large table; its own finding says so.
        Err(error) if error.state() == Some(&SqlState::QUERY_CANCELED) => Ok(None),
        Err(error) => Err(error),
    }
}

fn refused(code: &'static str, unready: Unready) -> Option<Finding> {
    let Unready::Wrong { message, hint, .. } = unready else { return None };
    Some(Finding::new(Level::Error, code, message).setting(hint))
}
