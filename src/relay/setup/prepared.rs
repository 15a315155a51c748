//! A relay of a stream that has passed its checks: what its turns work with.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::cursor::{HaltScope, RestsOn};
use crate::message::Field;
use crate::metrics::CursorMetrics;
use crate::relay::setup::lane_memory::LaneMemory;
use crate::relay::setup::row_key::RowKey;
use crate::relay::{Config, Guarantee};
use crate::{pace, sink, source};

/// See the module.
#[derive(Debug)]
pub struct PreparedStream {
    /// What was configured.
    pub config: Config,
    /// Its table.
    pub shape: Arc<source::shape::Shape>,
    /// Its sink.
    pub sink: Arc<sink::Sink>,
    /// What is read of each row: what the sink needs, and behind it what makes the key.
    pub fields: Arc<[Field]>,
    /// By what a row's key is found, where keys are parked.
    pub key: Option<Arc<RowKey>>,
    /// By what a row's lane is found, where messages are sent side by side.
    pub lane: Option<Arc<RowKey>>,
    /// The lanes that wait for their next attempt.
    pub waiting: Arc<LaneMemory>,
    /// The statements that read for the sink from the table.
    pub texts: source::fetch::Texts,
    /// Where dead letters are copied to.
    pub letters: Option<Arc<sink::kafka::LetterTopic>>,
    /// What its cursor belongs to, as JSON.
    pub identity: String,
    /// Of the configuration and its secrets.
    pub fingerprint: String,
    /// What is known of its cursor's status.
    pub status: Arc<StatusFlags>,
    /// Another took its place: the table has another shape, or it is prepared again.
    pub superseded: AtomicBool,
    /// Its cursor's metrics.
    pub metrics: Arc<CursorMetrics>,
}

/// What a cursor's status holds, as the polls of the table and this process's own reports show it. Both write it, so it is
/// shared; a wrong value costs one needless or one late statement.
#[derive(Debug, Default)]
pub struct StatusFlags {
    reported: AtomicBool,
    circuit_open: AtomicBool,
}

impl StatusFlags {
    /// Whether the status may hold an error, which the next success must clear.
    #[must_use]
    pub fn reported(&self) -> bool {
        self.reported.load(Ordering::Relaxed)
    }

    /// Notes whether the status may hold an error.
    pub fn set_reported(&self, reported: bool) {
        self.reported.store(reported, Ordering::Relaxed);
    }

    /// Whether the circuit of the sink was open when it was last read or written.
    #[must_use]
    pub fn circuit_open(&self) -> bool {
        self.circuit_open.load(Ordering::Relaxed)
    }

    /// Notes whether the circuit is open.
    pub fn set_circuit_open(&self, open: bool) {
        self.circuit_open.store(open, Ordering::Relaxed);
    }
}

impl PreparedStream {
    /// Whether the relay stands still, with this halt of its cursor.
    pub(in crate::relay) fn stands_still(&self, halted: Option<&HaltScope>) -> bool {
        halted.is_some_and(|halted| halted.counts_for(&self.fingerprint))
    }

    /// What positions of this table rest on, under that rule; from when on transactions were open is not known.
    pub(in crate::relay) fn rests_on(&self, rule: Option<String>) -> RestsOn {
        let source::shape::Shape { order, order_columns, .. } = &*self.shape;
        RestsOn { rule, open_since: None, order: Some(order.clone()), columns: Some(order_columns.clone()) }
    }

    /// Whether it can go on with the table's new shape: its sink gets columns of the types that it knows, and reading them calls no
    /// function that is not trusted.
    pub(in crate::relay) fn fits(&self, shape: &source::shape::Shape) -> bool {
        self.sink.fits(&shape.columns) && shape.casts_called(&self.fields).is_empty()
    }

    /// The same relay with the table's new shape, of which it reads its shard.
    #[must_use]
    pub fn with_shape(&self, shape: &Arc<source::shape::Shape>) -> Self {
        let shape = shape.for_shard(self.config.shard.as_ref());
        Self {
            texts: source::fetch::Texts::new(&shape, &self.fields, self.config.turn.max_row_bytes),
            shape,
            config: self.config.clone(),
            sink: Arc::clone(&self.sink),
            fields: Arc::clone(&self.fields),
            key: self.key.clone(),
            lane: self.lane.clone(),
            waiting: Arc::clone(&self.waiting),
            letters: self.letters.clone(),
            identity: self.identity.clone(),
            fingerprint: self.fingerprint.clone(),
            status: Arc::clone(&self.status),
            superseded: AtomicBool::new(false),
            metrics: Arc::clone(&self.metrics),
        }
    }

    /// Another takes its place: a task that works with this one ends as soon as it can.
    pub(in crate::relay) fn supersede(&self) {
        self.superseded.store(true, Ordering::Relaxed);
    }

    pub(in crate::relay) fn is_superseded(&self) -> bool {
        self.superseded.load(Ordering::Relaxed)
    }

    /// Whether turns record their progress: not where what was published is undone with the turn, or must never come again.
    pub(in crate::relay) fn records_progress(&self) -> bool {
        let repeats = matches!(self.config.guarantee, Guarantee::AtLeastOnce | Guarantee::Deduplicated);
        repeats && self.sink.says_what_is_acknowledged()
    }

    /// Whether turns record which rows they pass.
    pub(in crate::relay) fn audits(&self) -> bool {
        self.config.unaudited(self.shape.sweep.is_some()).is_none()
    }

    /// Whether rows are left out that do not match.
    pub(in crate::relay) fn filters(&self) -> bool {
        self.fields.last() == Some(&Field::Matches)
    }

    /// Whether a turn may pass rows that it does not publish.
    pub(in crate::relay) fn may_pass_rows(&self) -> bool {
        self.filters() || self.key.is_some()
    }

    /// The most rows that are read beyond one that is not acknowledged.
    pub(in crate::relay) fn window(&self) -> usize {
        if self.config.lanes.are_used() { self.config.lanes.window } else { 0 }
    }

    /// How much larger than configured a turn may grow.
    pub(in crate::relay) fn largest_growth(&self) -> pace::Largest {
        if self.sink.says_what_is_acknowledged() { pace::Largest::RELEASED } else { pace::Largest::KEPT }
    }
}
