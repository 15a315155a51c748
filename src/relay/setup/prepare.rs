//! What must be true before a relay runs: the same checks as `check`, a cursor row, a sink.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::cursor::{self, CHECK, ErrorReport, HaltScope, RelayFacts};
use crate::database::{Error, Session};
use crate::message::Field;
use crate::metrics::CursorMetrics;
use crate::relay::engine::Engine;
use crate::relay::engine::not_ready::Unready;
use crate::relay::setup::begin;
use crate::relay::setup::begin::FirstLook;
use crate::relay::setup::encoding;
use crate::relay::setup::fingerprint::fingerprint;
use crate::relay::setup::naming;
use crate::relay::setup::prepared::{PreparedStream, StatusFlags};
use crate::relay::setup::shards;
use crate::relay::setup::sinks;
use crate::relay::{Config, OnPoison};
use crate::sink::{Sink, named};
use crate::source::fetch::Texts;
use crate::source::finding::Level;
use crate::source::shape::Shape;
use crate::source::{judge, table};

/// Reads and judges the source's table.
///
/// # Errors
/// The database's; the inner error when the table may not be read as a stream.
pub async fn shape(session: &Session, source: &crate::source::Config) -> Result<Result<Shape, Unready>, Error> {
    let crate::source::Config::Stream(source) = source else {
        let message = format!("{} is read as due work, row by row: there is no position in it", source.table());
        return Ok(Err(Unready::wrong("no_position", message, "This is for relays of [relay.source.stream].")));
    };
    let table = match table::inspect(session, source).await {
        Ok(table) => table,
        Err(table::InspectError::Database(error)) => return Err(error),
        Err(error) => return Ok(Err(Unready::first(error.findings()))),
    };
    let verdict = judge::judge(&table, source);
    if verdict.findings.iter().any(|finding| finding.level == Level::Error) {
        return Ok(Err(Unready::first(verdict.findings)));
    }
    Ok(Ok(table.shape(source, &verdict)))
}

/// Makes a relay ready: sink, columns, cursor row.
///
/// # Errors
/// The database's; the inner error when something must be fixed first.
pub(in crate::relay) async fn ready(
    engine: &Arc<Engine>,
    config: &Config,
    shape: &Arc<Shape>,
    first: &FirstLook,
) -> Result<Result<PreparedStream, Unready>, Error> {
    let session = engine.probe.session().await?;
    let shape = &shape.for_shard(config.shard.as_ref());
    if let Err(unready) = shards::readable(&session, config).await? {
        return Ok(Err(unready));
    }
    let sink = match sinks::make(engine, config, sinks::KnownTable::of(shape)).await {
        Ok(sink) => sink,
        Err(unready) => return Ok(Err(unready)),
    };
    let letters = match sinks::letters(engine, config).await {
        Ok(letters) => letters,
        Err(unready) => return Ok(Err(unready)),
    };
    let (fields, key) = sinks::read_of_each_row(config, sink.fields().to_vec());
    let key = key.map(Arc::new);
    if let Err(unready) = columns(&session, config, shape, &fields).await {
        return Ok(Err(unready));
    }
    if let Sink::Sql(sink) = &sink {
        let slot = engine.slot(false).await?;
        if let Err(failure) = sinks::inspect(slot.lock, sink).await {
            return Ok(Err(failure.into()));
        }
    }
    let identity = identity(&session, config).await?;
    if let Err(unready) = begin::create(engine, &session, config, Some(shape), &identity, Some(first)).await? {
        return Ok(Err(unready));
    }
    // After it was made: of two replicas that make different sets at once, one at least sees the other's.
    if let Err(unready) = shards::alone(&session, config, &identity).await? {
        return Ok(Err(unready));
    }
    let facts = RelayFacts { identity: &identity, root: shape.root, relations: &shape.descendants };
    let seat = match bind(engine, &session, config, facts).await? {
        Ok(seat) => seat,
        Err(unready) => return Ok(Err(unready)),
    };
    let status = Arc::new(StatusFlags::default());
    status.set_reported(seat.reported);
    Ok(Ok(PreparedStream {
        metrics: Arc::new(
            CursorMetrics::new(&config.name, config.sink.kind())
                .of_stream(&config.source.table().to_string())
                .with_rate(sink.min_interval().is_some()),
        ),
        config: config.clone(),
        shape: Arc::clone(shape),
        texts: Texts::new(shape, &fields, config.turn.max_row_bytes),
        sink: Arc::new(sink),
        fields: fields.into(),
        key: key.clone().filter(|_| config.on_poison == OnPoison::ParkKey),
        lane: key.filter(|_| config.lanes.are_used()),
        waiting: Arc::default(),
        letters,
        identity: seat.identity,
        fingerprint: seat.fingerprint,
        status,
        superseded: AtomicBool::new(false),
    }))
}

/// What a relay's cursor says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::relay) struct Seat {
    /// What the cursor belongs to, as JSON.
    pub(in crate::relay) identity: String,
    /// Of the configuration and its secrets.
    pub(in crate::relay) fingerprint: String,
    /// `cursor_status` holds an error that the next success must clear.
    pub(in crate::relay) reported: bool,
}

impl Seat {
    /// Whether the relay stands still, with this halt of its cursor.
    pub(in crate::relay) fn stands_still(&self, halted: Option<&HaltScope>) -> bool {
        halted.is_some_and(|halted| halted.counts_for(&self.fingerprint))
    }
}

/// Makes the cursor's row of a relay that sends its rows each on their own, from the table with this oid; ends a halt that no
/// longer counts.
pub(in crate::relay) async fn seat(
    engine: &Engine,
    session: &Session,
    config: &Config,
    root: u32,
) -> Result<Result<Seat, Unready>, Error> {
    if let Some(wrong) = encoding::finding(session).await? {
        return Ok(Err(Unready::first(vec![wrong])));
    }
    let identity = identity(session, config).await?;
    if let Err(unready) = begin::create(engine, session, config, None, &identity, None).await? {
        return Ok(Err(unready));
    }
    let relations = [root].into();
    bind(engine, session, config, RelayFacts { identity: &identity, root, relations: &relations }).await
}

/// Takes over the cursor's row, which exists: claims it for this configuration and ends a halt that no longer counts.
async fn bind(
    engine: &Engine,
    session: &Session,
    config: &Config,
    facts: RelayFacts<'_>,
) -> Result<Result<Seat, Unready>, Error> {
    let identity = facts.identity.to_owned();
    if let Some(other) = cursor::foreign_identity(session, &config.name, facts).await? {
        return Ok(Err(Unready::foreign(&config.name, &other, &identity)));
    }
    let standing = cursor::standings(session, &[&config.name]).await?;
    let fingerprint = fingerprint(config);
    let halted = standing.first().and_then(|standing| standing.halted.clone());
    // Without the claim the halt is another configuration's, which has not been resumed.
    if let Err(unready) = engine.registry.hold(&config.name, engine.call_deadline).await {
        return Ok(Err(unready));
    }
    // A halt ends when the relay begins with another configuration. One that came later is another replica's, which runs beside this one;
    // and one that a check of an earlier start wrote ends now that it passes.
    let begins = engine.registry.begins(&config.name, &fingerprint);
    let stale = halted.filter(|halted| halted.is_check() || begins && !halted.counts_for(&fingerprint));
    if let Some(stale) = stale {
        cursor::clear(session, &config.name, Some(stale.stored())).await?;
    }
    engine.registry.begun(&config.name, &fingerprint);
    let reported = standing.first().is_some_and(|standing| standing.state == "backing_off");
    Ok(Ok(Seat { identity, fingerprint, reported }))
}

/// Says that a relay may not run: in its metrics, in its cursor's status and, when it is news, in the log.
/// With what the `first` look at its table saw, its cursor begins there.
pub(in crate::relay) async fn not_ready(
    engine: &Engine,
    config: &Config,
    unready: &Unready,
    first: Option<&FirstLook>,
    news: bool,
) {
    let Unready::Wrong { code, message, hint, passing } = unready else { return };
    engine.registry.refuse(&config.name, unready);
    let hint = &named(hint, &config.name);
    let metrics = CursorMetrics::new(&config.name, config.sink.kind());
    metrics.set_halted(!passing);
    if news {
        tracing::error!(cursor = config.name, code, error = message, hint, "relay cannot run; it is checked every 5 s");
    }
    let report = ErrorReport { class: if *passing { "retry" } else { "fatal" }, code, message, hint, message_id: None };
    // A check that passes again says nothing of rows that were written meanwhile with instants of another server.
    let lasting = *code == judge::SUBSCRIBED;
    let fingerprint = format!("{}{}", if lasting { "" } else { CHECK }, fingerprint(config));
    let halted = (!passing).then_some(fingerprint.as_str());
    let written: Result<(), Error> = async {
        let session = engine.probe.session().await?;
        // With its cursor there, `status` and `cursor list` show the relay and what is wrong with it.
        let identity = identity(&session, config).await?;
        if begin::create(engine, &session, config, None, &identity, first).await?.is_err() {
            tracing::debug!(cursor = config.name, "cursor not created: the relay may have been renamed");
        }
        cursor::report(&session, &config.name, &report, halted, None).await
    }
    .await;
    if let Err(error) = written {
        tracing::warn!(cursor = config.name, %error, "cannot record the cursor's status");
    }
}

/// Whether every column that the sink asks for exists and may be read: a statement that reads them is prepared.
async fn columns(session: &Session, config: &Config, shape: &Shape, fields: &[Field]) -> Result<(), Unready> {
    let casts = shape.casts_called(fields);
    if !casts.is_empty() {
        return Err(Unready::first(casts));
    }
    let sql = shape.fetch_sql(fields, crate::source::shape::After::Row, Some(config.turn.max_row_bytes));
    match session.prepare(&sql).await {
        Ok(_) => Ok(()),
        // Not about the columns: the server restarts, say.
        Err(error)
            if error.code().is_none_or(|state| !["22", "42"].iter().any(|class| state.code().starts_with(class))) =>
        {
            Err(Unready::from(&Error::from(error)))
        }
        Err(error) => {
            let said = crate::database::error::describe(&error);
            let otherwise = "Correct the column named in the relay's sink, or grant SELECT on it to the relay's role.";
            let hint = naming::hint(config, &said, otherwise);
            let message = format!("relay {} cannot read {}: {said}", config.name, shape.config.table);
            Err(Unready::wrong("column_unreadable", message, hint))
        }
    }
}

/// What a cursor of this relay belongs to, as JSON.
///
/// # Errors
/// The database's.
pub async fn identity(session: &Session, config: &Config) -> Result<String, Error> {
    let table = config.source.table().to_string();
    // Of due work, each row says by itself whether it was sent: another receiver takes over what is left.
    let (kind, target) = match &config.source {
        crate::source::Config::Stream(_) => (config.sink.kind(), config.sink.target()),
        crate::source::Config::Pending(_) | crate::source::Config::Schedule(_) => ("due work", "any".to_owned()),
        crate::source::Config::Requests(_) => ("requests", "any".to_owned()),
    };
    // The cluster's own number: the same database name on another server is another source. What has no shards says nothing
    // of them, so that cursors made before there were any belong to the same.
    let shards = config.shard.as_ref().map(|shard| (shard.of.to_string(), shard.key.as_str())).unzip();
    let row = session
        .query_one(include_str!("sql/prepare_identity.sql"), &[&table, &kind, &target, &shards.0, &shards.1])
        .await?;
    Ok(row.try_get(0)?)
}
