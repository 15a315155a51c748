//! The `status` document: where every cursor stands, computed by whoever asks, without any lock.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;
use tokio_postgres::error::SqlState;

use crate::cursor::control::{self, CursorSummary};
use crate::cursor::open_work::{OpenWork, open_work};
use crate::cursor::unknown;
use crate::database::{Error, Session};
use crate::migrate;
use crate::position::{Position, Timestamp};
use crate::relay::Config;
use crate::relay::engine::lag;
use crate::relay::engine::replicas::{self, Fleet, document, fleet};
use crate::relay::inspect::{clock_step, waiting_rows};
use crate::relay::setup::prepare;
use crate::source;
use crate::source::shape::Shape;
use crate::source::watcher::{Sighting, Watcher};

mod advanced;
mod horizon;
mod parts;
mod running;
mod words;

pub use clock_step::ClockStepStatus;
pub(super) use horizon::horizon;
pub use horizon::{HeldStatus, HorizonStatus};
pub use parts::{HolderStatus, PositionStatus, SinkStatus};
pub use running::{MOST, RunningAction};
pub use words::in_one_unit;

/// Two scans this far apart tell a writer's bound also to a process that has only just come.
const BETWEEN_SCANS: Duration = Duration::from_millis(100);

/// A row that waits for less than this for the horizon is the usual work of short transactions, and no state of its own.
const STEADY: Duration = Duration::from_secs(1);
/// A cursor that has just advanced is running, also while nothing waits for an instant: its state does not flicker.
const BUSY: Duration = Duration::from_secs(5);
/// The state of a cursor whose relay no live replica has.
pub const NO_REPLICA: &str = "no_replica";

/// The whole document.
#[derive(Debug, Serialize)]
pub struct Status {
    /// This program's version.
    pub version: &'static str,
    /// The schema's.
    pub schema_version: i32,
    /// The database's clock.
    pub observed_at: String,
    /// Every cursor.
    pub cursors: Vec<CursorStatus>,
    /// Actions of schedules that are running, the longest first.
    pub actions: Vec<RunningAction>,
    /// The live replicas.
    pub replicas: Vec<serde_json::Value>,
    /// The same, for those who ask more of them.
    #[serde(skip)]
    pub fleet: Fleet,
}

/// One cursor.
#[derive(Debug, Serialize)]
pub struct CursorStatus {
    /// Its name.
    pub name: String,
    /// Its relay's.
    pub relay: String,
    /// It has a row; false of a name that was refused before it had a cursor.
    #[serde(skip)]
    pub exists: bool,
    /// In one word.
    pub state: &'static str,
    /// Where it is.
    pub position: PositionStatus,
    /// Age of the oldest row still to come; null when its table is not configured here or cannot be read.
    pub lag_seconds: Option<f64>,
    /// How many rows are still to come.
    pub backlog_rows: Option<i64>,
    /// Whether there may be more.
    pub backlog_capped: Option<bool>,
    /// Who has it.
    pub holder: Option<HolderStatus>,
    /// When it last advanced.
    pub advanced_at: Option<String>,
    /// How far its table is safe to read.
    pub horizon: Option<HorizonStatus>,
    /// Its sink.
    pub sink: SinkStatus,
    /// The clock stepped back, and no operator has moved the cursor since: what was stamped between may not have been delivered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_step: Option<ClockStepStatus>,
    /// No live replica has its relay, and this waits for one: schedules, actions, requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_work: Option<OpenWork>,
    /// Its last error.
    pub last_error: Option<Box<RawValue>>,
    /// Whether an operator has paused it.
    pub paused: bool,
    /// It is halted.
    #[serde(skip)]
    pub halted: bool,
    /// By a check: the halt ends when the check passes.
    #[serde(skip)]
    pub by_check: bool,
    /// All rows that wait lie above the horizon.
    #[serde(skip)]
    pub held: bool,
    /// Rows that became visible behind the position and came late, as far back as their letters are kept.
    pub late_rows: i64,
    /// Dead letters that wait for an operator or for their turn.
    pub dead_letters: i64,
    /// Keys that are parked, each behind a dead letter.
    pub parked_keys: i64,
    /// Rows that were sent or not, never to be sent again, and not settled by an operator yet.
    pub unknown_outcomes: i64,
    /// The keys of the newest twenty of them, as an array of arrays; `outbox-relay request list --unknown` has all.
    pub unknown_keys: Box<RawValue>,
}

/// Asks PostgreSQL for everything.
///
/// # Errors
/// When it cannot be asked at all; a table that cannot be read leaves nulls.
pub async fn status(session: &Session, watcher: &Watcher, relays: &[Config]) -> anyhow::Result<Status> {
    let schema = migrate::require(session).await?;
    let sightings = sightings(session, watcher, relays).await?;
    let mut cursors = Vec::new();
    let listed = control::list(session).await?;
    let fleet = fleet(session).await?;
    let unknown: HashMap<String, unknown::Count> = unknown::counts(session).await?.into_iter().collect();
    let steps = clock_step::all(session).await?;
    let lacking = listed.iter().filter(|listed| fleet.lacks(&listed.name)).map(|listed| listed.relay.as_str());
    let open = open_work(session, &lacking.collect::<Vec<_>>()).await?;
    // Read after the cursors: what has advanced since would look like a clock that has stepped back.
    let clock: Timestamp = session.query_one("SELECT pg_catalog.clock_timestamp()", &[]).await?.try_get(0)?;
    for mut listed in listed {
        // What a replica cannot run, others do: it is among their notes.
        if listed.by_check && fleet.differs_on(&listed.name) {
            (listed.halted, listed.last_error) = (false, None);
        }
        let relay = relays.iter().find(|relay| relay.name == listed.name);
        let seen = relay.and_then(|relay| Some((relay, sightings.get(&relay.source)?)));
        let seen = seen.map(|(relay, (shape, sighting))| (shape.for_shard(relay.shard.as_ref()), sighting));
        let kind = relay.map(|relay| relay.sink.kind());
        let due = match relay {
            Some(relay) => readable(waiting_rows::of_due_work(session, relay).await)?.flatten(),
            None => None,
        };
        let listed_unknown = unknown.get(&listed.name).cloned().unwrap_or_default();
        let unknown_keys = RawValue::from_string(listed_unknown.keys.unwrap_or_else(|| "[]".to_owned()))?;
        let unknown_outcomes = listed_unknown.rows;
        let clock_step = steps.get(&listed.name).cloned();
        let lacks = fleet.lacks(&listed.name);
        let open_work = open.get(&listed.relay).copied();
        let found = cursor(session, listed, kind, seen.as_ref(), due, clock).await?;
        let by_check = found.halted && found.by_check;
        let state = if lacks { without_replica(found.state, by_check, kind.is_some()) } else { found.state };
        cursors.push(CursorStatus { state, unknown_outcomes, unknown_keys, clock_step, open_work, ..found });
    }
    Ok(Status {
        version: env!("CARGO_PKG_VERSION"),
        schema_version: schema.version,
        observed_at: clock.to_string(),
        cursors,
        actions: running::running(session).await?,
        replicas: fleet.replicas.iter().map(document).collect(),
        fleet,
    })
}

/// The state of a cursor that no live replica's configuration has. Of a relay that is configured here, what operators have done,
/// or must do, counts more; a halt by a check, which a replica ends, does not.
fn without_replica(state: &'static str, by_check: bool, configured: bool) -> &'static str {
    let stands = matches!(state, "halted" | "paused" | "clock_regression") && !by_check;
    if stands && configured { state } else { NO_REPLICA }
}

/// Looks at every table that can be read, twice: both scans of all tables first, so that many tables take no longer.
async fn sightings<'a>(
    session: &Session,
    watcher: &Watcher,
    relays: &'a [Config],
) -> Result<HashMap<&'a source::Config, (Arc<Shape>, Sighting)>, Error> {
    let mut shapes: HashMap<&source::Config, Shape> = HashMap::new();
    for relay in relays {
        if shapes.contains_key(&relay.source) {
            continue;
        }
        if let Some(Ok(shape)) = readable(prepare::shape(session, &relay.source).await)? {
            watcher.scan(&shape).await?;
            shapes.insert(&relay.source, shape);
        }
    }
    tokio::time::sleep(BETWEEN_SCANS).await;
    let mut seen = HashMap::new();
    for (source, shape) in shapes {
        let sighting = watcher.scan(&shape).await?;
        seen.insert(source, (Arc::new(shape), sighting));
    }
    Ok(seen)
}

/// None of a table that is locked for longer than the session waits, or that cannot be read: a column is not there, for example.
fn readable<T>(looked: Result<T, Error>) -> Result<Option<T>, Error> {
    match looked {
        Err(error) if error.state() == Some(&SqlState::LOCK_NOT_AVAILABLE) || error.state_class() == "42" => Ok(None),
        looked => looked.map(Some),
    }
}

/// Lag, and whether all that waits lies above the horizon.
async fn measure(
    session: &Session,
    shape: &Shape,
    sighting: &Sighting,
    position: Option<&Position>,
) -> Result<(lag::Lag, bool), Error> {
    let horizon = sighting.horizon.at;
    let lag = lag::measure(session, shape, position, sighting.clock()).await?;
    let safe = lag::measure(session, shape, position, horizon.minus(Duration::from_micros(1)));
    let held = lag.rows > 0 && (!horizon.is_finite() || safe.await?.rows == 0);
    Ok((lag, held))
}

async fn cursor(
    session: &Session,
    listed: CursorSummary,
    kind: Option<&'static str>,
    seen: Option<&(Arc<Shape>, &Sighting)>,
    due: Option<lag::Lag>,
    clock: Timestamp,
) -> Result<CursorStatus, Error> {
    let position = listed.position_created_at.map(|created_at| Position { created_at, id: listed.position_id.clone() });
    let due_work = due.is_some();
    let (mut measured, mut held) = (due, false);
    if let Some((shape, sighting)) = seen
        && let Some((lag, is_held)) = readable(measure(session, shape, sighting, position.as_ref()).await)?
    {
        (measured, held) = (Some(lag), is_held);
    }
    // A step smaller than the window does no harm, and no turn minds it.
    let window = seen.map_or(Duration::ZERO, |(shape, _)| shape.margin.window);
    let regressed = listed.observed_at.is_some_and(|observed_at| clock.plus(window) < observed_at);
    let backing_off = listed.last_error.is_some() && !listed.halted;
    let advanced_at = advanced::advanced(&listed, due_work);
    let busy = advanced_at.is_some_and(|at| clock.since(at) < BUSY);
    let state = match () {
        () if listed.halted => "halted",
        () if listed.paused => "paused",
        () if regressed => "clock_regression",
        () if backing_off => "backing_off",
        () if held && measured.as_ref().is_none_or(|lag| lag.age >= STEADY) => "held",
        () if measured.as_ref().is_some_and(|lag| lag.rows == 0) && !busy => "idle",
        () => "running",
    };
    let replica = |holder: String| replicas::replica(&holder).to_owned();
    Ok(CursorStatus {
        state,
        position: PositionStatus {
            created_at: listed.position_created_at.map(|at| at.to_string()),
            id: listed.position_id,
        },
        lag_seconds: measured.as_ref().map(|lag| lag.age.as_secs_f64()),
        backlog_rows: measured.as_ref().map(|lag| lag.rows),
        backlog_capped: measured.as_ref().map(|lag| lag.capped),
        holder: listed.holder.map(|holder| HolderStatus { replica: replica(holder), pid: listed.pid }),
        advanced_at: advanced_at.map(|at| at.to_string()),
        horizon: seen.map(|(shape, sighting)| horizon(shape, sighting)),
        sink: SinkStatus {
            kind,
            circuit: if listed.circuit_opened_at.is_some() { "open" } else { "closed" },
            opened_at: listed.circuit_opened_at.map(|at| at.to_string()),
        },
        last_error: listed.last_error.and_then(|text| RawValue::from_string(text).ok()),
        exists: listed.exists,
        paused: listed.paused,
        halted: listed.halted,
        by_check: listed.by_check,
        held,
        clock_step: None,
        open_work: None,
        late_rows: listed.late_rows,
        dead_letters: listed.dead_letters,
        parked_keys: listed.parked_keys,
        unknown_outcomes: 0,
        unknown_keys: Box::default(),
        name: listed.name,
        relay: listed.relay,
    })
}
