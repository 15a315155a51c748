//! The engine: a relay moves the rows of one source to one sink through its cursor.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::time::Duration;

use crate::metrics::CursorMetrics;
use crate::position::Timestamp;
use crate::{pace, sink, source};

use self::stream::outcome;

pub mod engine;
pub mod inspect;
pub mod once;
mod queue;
pub mod setup;
pub mod stream;
pub mod supervisor;

/// One `[[relay]]` of the configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Its cursor's name: the relay's, with `#` and its number for a shard.
    pub name: String,
    /// The relay's name.
    pub relay: String,
    /// Which of the rows; all when there is none.
    pub shard: Option<source::shard::Shard>,
    /// What the receiver may see of a row.
    pub guarantee: Guarantee,
    /// Where a new cursor begins.
    pub start: Start,
    /// Which rows.
    pub source: source::Config,
    /// Where to.
    pub sink: sink::Config,
    /// What a poison message does.
    pub on_poison: OnPoison,
    /// What follows when nobody knows whether a request was sent.
    pub on_unknown: OnUnknown,
    /// A topic that gets a copy of each dead letter.
    pub dead_letter_topic: Option<String>,
    /// How much one turn takes.
    pub turn: TurnConfig,
    /// When to look.
    pub poll: pace::Config,
    /// A digest of everything configured for this relay, its cluster included; with the contents of
    /// [`Self::secret_files`] it tells whether the configuration has changed since a halt. Hex.
    pub fingerprint: String,
    /// Files whose contents belong to the fingerprint.
    pub secret_files: Vec<PathBuf>,
    /// A digest of what is configured that decides what is delivered, and where; without secrets. Hex.
    pub delivers: String,
    /// What follows when a live replica has another configuration of this relay.
    pub on_config_change: OnConfigChange,
}

impl Config {
    /// Whether it stands for its relay: the only cursor, or the first of its shards.
    #[must_use]
    pub fn is_first_shard(&self) -> bool {
        self.shard.as_ref().is_none_or(|shard| shard.number == 0)
    }

    /// Whether a changed number of partitions is taken as it comes.
    fn goes_on_with_new_partitions(&self) -> bool {
        match &self.sink {
            sink::Config::Kafka(kafka) => kafka.on_partition_change == sink::kafka::OnPartitionChange::Continue,
            sink::Config::Http(_)
            | sink::Config::Sms(_)
            | sink::Config::Webhook(_)
            | sink::Config::Sql(_)
            | sink::Config::Email(_)
            | sink::Config::Stdout(_)
            | sink::Config::Command(_) => true,
        }
    }

    /// Whether an advance waits for the disk: somebody acts on what was published, who cannot be asked to forget it.
    fn waits_for_disk(&self) -> bool {
        self.sink.one_by_one() || self.guarantee == Guarantee::InDatabase
    }
}

/// What the receiver may see of a row when something fails in between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Guarantee {
    /// It, perhaps again: published, then recorded as sent.
    #[default]
    AtLeastOnce,
    /// It or nothing, never twice: recorded as sent, then published. What was in flight at a crash is listed as unknown.
    AtMostOnce,
    /// A request of the ledger: once, for as long as the receiver remembers its key; every outcome that nobody knows is
    /// counted and listed.
    Deduplicated,
    /// What it changes, exactly once: the receiver is this database, and publishing and recording are one transaction.
    InDatabase,
}

/// What happens when the receiver will never accept a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnPoison {
    /// The relay halts at it: order is sacred.
    #[default]
    Halt,
    /// It is put aside in `outbox.dead_letter`, and the relay goes on.
    DeadLetter,
}

/// What follows when a live replica has another configuration of the relay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnConfigChange {
    /// The one that came later waits until the other has gone: messages of two configurations never interleave.
    #[default]
    Wait,
    /// It relays beside the other.
    GoOn,
}

/// What follows when nobody knows whether a request was sent: its replica ended, or no answer came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnUnknown {
    /// It is sent again, with the same body and the same idempotency key, for as long as the receiver remembers that key.
    Resend,
    /// The receiver is asked.
    Ask,
    /// It is listed as unknown, for a person to decide.
    #[default]
    DeadLetter,
}

/// Where a new cursor begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Before every row.
    Beginning,
    /// When a replica first looks at the table: rows that are stamped later come, and those of transactions that were open then
    /// and whose start can be read.
    Now,
    /// At this instant: its rows are included.
    At(Timestamp),
}

/// `[relay.turn]` of the configuration, with the times derived from `deadline`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnConfig {
    /// The most rows of one turn.
    pub rows: usize,
    /// The most bytes of one turn; the row that passes it is the last.
    pub bytes: usize,
    /// The most bytes of one row; a larger one is never read, and is poison.
    pub max_row_bytes: usize,
    /// How long one turn reads.
    pub time: Duration,
    /// When a turn gives up publishing.
    pub deadline: Duration,
}

impl TurnConfig {
    /// The longest single call to a receiver or to PostgreSQL: 3/5 of the deadline.
    #[must_use]
    pub fn call_deadline(&self) -> Duration {
        self.deadline * 3 / 5
    }

    /// When PostgreSQL takes the lock from a holder that is silent: 12/5 of the deadline, so that a holder that only is
    /// slow gives up long before it.
    #[must_use]
    pub fn lock_kill(&self) -> Duration {
        self.deadline * 12 / 5
    }
}

/// A relay that has passed its checks and may run turns.
#[derive(Debug)]
pub struct Ready {
    /// What was configured.
    pub config: Config,
    /// Its table.
    pub shape: Arc<source::shape::Shape>,
    /// Its sink.
    pub sink: Arc<sink::Sink>,
    /// The statements that read for the sink from the table.
    pub texts: source::fetch::Texts,
    /// Where dead letters are copied to.
    pub letters: Option<Arc<sink::kafka::LetterTopic>>,
    /// What its cursor belongs to, as JSON.
    pub identity: String,
    /// Of the configuration and its secrets.
    pub fingerprint: String,
    /// Whether `cursor_status` holds an error that the next success must clear.
    pub reported: AtomicBool,
    /// Rows that were acknowledged but not advanced over by this process's last turn.
    pub unconfirmed: AtomicUsize,
    /// How many rows the next turn takes at the most.
    pub appetite: Arc<AtomicUsize>,
    /// By how much turns are larger than configured, while a backlog is read.
    pub stretch: Arc<AtomicUsize>,
    /// The last turn published for longer than a turn may read: what is read ahead would be too old.
    pub slow: Arc<AtomicBool>,
    /// The bytes of the largest row of the last fetch; 0 before the first.
    pub largest_row: Arc<AtomicUsize>,
    /// The bytes of a row of the last fetch, on average; 0 before the first.
    pub mean_row: Arc<AtomicUsize>,
    /// Another took its place: the table has another shape, or it is made ready anew.
    pub superseded: AtomicBool,
    /// How many of the next messages are published one by one, because one among them was refused with its batch.
    pub suspects: Arc<AtomicUsize>,
    /// The number of partitions that `on_partition_change = "continue"` has accepted; 0 for none.
    pub accepted_partitions: Arc<AtomicI32>,
    /// Whether the sink's circuit was open at the last look.
    pub circuit_open: Arc<AtomicBool>,
    /// Its cursor's metrics.
    pub metrics: Arc<CursorMetrics>,
}

impl Ready {
    /// The same relay with the table's new shape, of which it reads its shard.
    #[must_use]
    pub fn with_shape(&self, shape: &Arc<source::shape::Shape>) -> Self {
        let shape = shape.for_shard(self.config.shard.as_ref());
        Self {
            texts: source::fetch::Texts::new(&shape, self.sink.fields(), self.config.turn.max_row_bytes),
            shape,
            config: self.config.clone(),
            sink: Arc::clone(&self.sink),
            letters: self.letters.clone(),
            identity: self.identity.clone(),
            fingerprint: self.fingerprint.clone(),
            reported: AtomicBool::new(self.reported()),
            unconfirmed: AtomicUsize::new(self.unconfirmed.load(Ordering::Relaxed)),
            appetite: Arc::clone(&self.appetite),
            stretch: Arc::clone(&self.stretch),
            slow: Arc::clone(&self.slow),
            largest_row: Arc::clone(&self.largest_row),
            mean_row: Arc::clone(&self.mean_row),
            superseded: AtomicBool::new(false),
            suspects: Arc::clone(&self.suspects),
            accepted_partitions: Arc::clone(&self.accepted_partitions),
            circuit_open: Arc::clone(&self.circuit_open),
            metrics: Arc::clone(&self.metrics),
        }
    }

    /// Another takes its place: whoever works with this one gives up as soon as it can.
    fn supersede(&self) {
        self.superseded.store(true, Ordering::Relaxed);
    }

    fn is_superseded(&self) -> bool {
        self.superseded.load(Ordering::Relaxed)
    }

    /// Learns from a turn of `rows` rows, the most that it could take, how many the next one should take.
    fn learn(&self, rows: usize, published_in: Duration) {
        let next = pace::appetite(rows, self.most_rows(), published_in, self.config.turn.deadline);
        self.appetite.store(next, Ordering::Relaxed);
    }

    /// The most rows that a turn may take now.
    fn most_rows(&self) -> usize {
        self.config.turn.rows.saturating_mul(self.stretch.load(Ordering::Relaxed))
    }

    /// The most bytes that a turn may take now.
    fn most_bytes(&self) -> usize {
        self.config.turn.bytes.saturating_mul(self.stretch.load(Ordering::Relaxed).min(self.largest().bytes))
    }

    fn largest(&self) -> pace::Largest {
        if self.sink.says_what_is_acknowledged() { pace::Largest::RELEASED } else { pace::Largest::KEPT }
    }

    /// Learns from a turn that left rows behind whether the next should be larger than configured.
    fn stretch(&self, timings: &outcome::Timings) {
        // Who sends one by one, or keeps a rate, is not held up by what a turn costs whatever its rows.
        if !self.config.sink.one_by_one() && self.sink.min_interval().is_none() {
            let fixed = timings.lock + timings.tail + timings.advance + timings.commit;
            let now = self.stretch.load(Ordering::Relaxed);
            let next = pace::stretch(now, self.largest(), fixed, timings.publish, self.config.turn.time);
            self.stretch.store(next, Ordering::Relaxed);
        }
    }

    fn reported(&self) -> bool {
        self.reported.load(Ordering::Relaxed)
    }

    fn set_reported(&self, reported: bool) {
        self.reported.store(reported, Ordering::Relaxed);
    }
}
