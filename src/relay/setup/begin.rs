//! Where a relay's cursor begins, and its creation.

use crate::cursor::{self, Creation};
use crate::database::{Error, Session};
use crate::position::{Position, Timestamp};
use crate::relay::engine::Engine;
use crate::relay::engine::not_ready::Unready;
use crate::relay::setup::deleted::{self, LastSeen};
use crate::relay::setup::renamed;
use crate::relay::{Config, Start};
use crate::source::horizon::{Held, Holder, Why};
use crate::source::shape::Shape;
use crate::source::watcher::Sighting;

/// What this process saw when it first looked at a relay's table: `start = "now"` means that instant, however long it takes
/// until the relay is ready.
#[derive(Clone, Debug)]
pub(in crate::relay) struct FirstLook {
    /// Rows of transactions that began later lie at or above it, and those of each writer whose start can be read.
    at: Timestamp,
    /// Writers that may have inserted rows below it, and have not committed them.
    unknown: Vec<Holder>,
    /// The cursor was there before, in the life of this process.
    seen: Option<LastSeen>,
    /// The horizon rule of the table.
    rule: &'static str,
    /// The number of the column by which late rows are found: a cursor that is created while the relay is not ready must know from which
    /// snapshot on rows are late.
    sweep: Option<i16>,
}

impl FirstLook {
    /// Of a scan of the table.
    pub(in crate::relay) fn new(sighting: &Sighting, shape: &Shape) -> Self {
        let horizon = &sighting.horizon;
        // A standby delays rows, and makes none.
        // What was not waited for any longer may commit before the cursor has a snapshot by which it would be found late.
        let all = || horizon.held_by.iter().chain(&horizon.passed_over);
        let held_by = || all().filter(|held| held.why == Why::Transaction);
        let bounds = held_by().filter_map(|held| held.bound);
        let lowest = bounds.fold(horizon.observed_at, Timestamp::min);
        let unknown = |held: &&Held| held.bound.is_none();
        Self {
            at: lowest.minus(shape.margin.window).minus(shape.margin.precision),
            unknown: held_by().filter(unknown).map(|held| held.holder.clone()).collect(),
            seen: None,
            rule: shape.rule.as_str(),
            sweep: shape.sweep,
        }
    }

    /// The same, of a cursor that has been there.
    pub(in crate::relay) fn after(self, seen: Option<LastSeen>) -> Self {
        Self { seen, ..self }
    }

    /// Logs which rows the cursor leaves out although they are to come.
    fn warn(&self, cursor: &str) {
        if self.unknown.is_empty() {
            return;
        }
        let writers: Vec<String> = self.unknown.iter().map(named).collect();
        tracing::warn!(
            cursor,
            writers = writers.join(", "),
            at = %self.at,
            hint = format!(
                "Rows that they stamped before {} are not delivered. To deliver them, run `outbox-relay cursor seek {cursor} --at \
                 INSTANT` with an instant before those transactions began. Grant pg_read_all_stats to the relay's role so that \
                 the next relay reads when writers began.",
                self.at
            ),
            "cursor created while transactions whose start cannot be read were writing"
        );
    }
}

fn named(holder: &Holder) -> String {
    match (holder.pid, holder.application.as_deref().filter(|text| !text.is_empty())) {
        (Some(pid), Some(application)) => format!("pid {pid} ({application})"),
        (Some(pid), None) => format!("pid {pid}"),
        (None, _) => format!("prepared transaction {}", holder.transaction),
    }
}

/// Where the relay's cursor begins; none while that is not known, because the table has not been looked at.
fn position(start: Start, first: Option<&FirstLook>) -> Option<Option<Position>> {
    let at = |created_at| Some(Position { created_at, id: None });
    match start {
        Start::Beginning => Some(None),
        Start::At(instant) => Some(at(instant)),
        Start::Now => first.map(|first| at(first.at)),
    }
}

/// Creates the cursor's row unless it is there, or it is not known where it begins.
///
/// # Errors
/// The database's; the inner error when an operator must decide first.
pub(in crate::relay) async fn create(
    engine: &Engine,
    session: &Session,
    config: &Config,
    shape: Option<&Shape>,
    identity: &str,
    first: Option<&FirstLook>,
) -> Result<Result<(), Unready>, Error> {
    let Some(position) = position(config.start, first) else { return Ok(Ok(())) };
    if let Some(unready) = renamed::refusal(engine, session, config, identity).await? {
        let seen = first.and_then(|first| first.seen.as_ref());
        return Ok(Err(match seen {
            Some(seen) => unready.adding(&format!("; this replica had last seen the cursor {}", seen.place())),
            None => unready,
        }));
    }
    let (rule, sweep) = match (shape, first) {
        (Some(shape), _) => (Some(shape.rule.as_str()), shape.sweep),
        (None, Some(first)) => (Some(first.rule), first.sweep),
        (None, None) => (None, None),
    };
    let position = position.as_ref();
    let creation = Creation { name: &config.name, relay: &config.relay, identity, position, rule, sweep };
    if let Some(seen) = first.and_then(|first| first.seen.as_ref()) {
        return deleted::create_again(engine, session, config, seen, creation).await.map(Ok);
    }
    if cursor::create(session, creation).await? {
        tracing::info!(cursor = config.name, position = position.map(ToString::to_string), "cursor created");
        if let (Start::Now, Some(first)) = (config.start, first) {
            first.warn(&config.name);
        }
    }
    Ok(Ok(()))
}
