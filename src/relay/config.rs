//! What is configured for one relay.

use std::path::PathBuf;
use std::time::Duration;

mod audit;

use crate::position::Timestamp;
use crate::{pace, sink, source};

pub use audit::{Audit, Unaudited};

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
    /// How much it may parked, and by which column.
    pub parking: Parking,
    /// What is sent side by side.
    pub lanes: Lanes,
    /// What follows when rows become visible behind the position.
    pub on_late_row: OnLateRow,
    /// What follows when the outcome of a request is unknown.
    pub on_unknown: OnUnknown,
    /// What is recorded of the rows that it passes.
    pub audit: Audit,
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
    pub(in crate::relay) fn goes_on_with_new_partitions(&self) -> bool {
        match &self.sink {
            sink::Config::Kafka(kafka) => kafka.on_partition_change == sink::kafka::OnPartitionChange::Continue,
            sink::Config::Http(_)
            | sink::Config::Sms(_)
            | sink::Config::Webhook(_)
            | sink::Config::Sql(_)
            | sink::Config::Email(_)
            | sink::Config::Stdout(_)
            | sink::Config::Command(_)
            | sink::Config::Custom(_) => true,
        }
    }

    /// Why it is not recorded which rows are passed, if it is not. Unless what is recorded is kept for `verify`, that is so where rows that
    /// come late are found by their transaction (`sweeps`), and where rows are passed that are not published.
    #[must_use]
    pub fn unaudited(&self, sweeps: bool) -> Option<Unaudited> {
        let source::Config::Stream(stream) = &self.source else { return Some(Unaudited::NoStream) };
        let kept = self.audit.keep.is_some();
        match () {
            () if self.guarantee == Guarantee::AtMostOnce => Some(Unaudited::AtMostOnce),
            () if !self.audit.enabled => Some(Unaudited::Disabled),
            () if sweeps && !kept => Some(Unaudited::Swept),
            () if !stream.filter.is_empty() && !kept => Some(Unaudited::Filtered),
            () if self.on_poison == OnPoison::ParkKey && !kept => Some(Unaudited::Parking),
            () => None,
        }
    }

    /// Whether what is recorded is for `verify` alone: a row that an update makes match came in time, and is not to be delivered late.
    pub(in crate::relay) fn is_only_recorded(&self) -> bool {
        matches!(&self.source, source::Config::Stream(stream) if !stream.filter.is_empty())
    }

    /// Whether an advance waits for the disk: recipients act on what was published, and it cannot be taken back.
    pub(in crate::relay) fn waits_for_disk(&self) -> bool {
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
    /// A request of the ledger: once, for as long as the receiver remembers its key; every unknown outcome is
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
    /// It is dead-lettered, and the relay goes on.
    DeadLetter,
    /// It is dead-lettered, its key is parked with all of its later rows, and the relay goes on with the other keys.
    ParkKey,
}

/// How much a relay may parked (`on_poison = "park_key"`) before it halts, and by which column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parking {
    /// The most rows of one key.
    pub rows: u64,
    /// The most keys.
    pub keys: u64,
    /// The column whose text is a message's key, where the sink has none of its own.
    pub lane: Option<String>,
}

impl Default for Parking {
    fn default() -> Self {
        Self { rows: 10_000, keys: 1_000, lane: None }
    }
}

/// How messages are sent side by side: those of one lane keep their order, others do not wait for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lanes {
    /// The most messages that are on their way at a time, or were acknowledged and are not recorded yet: a crash repeats no more.
    pub in_flight: usize,
    /// How long a lane is retried before its key is parked, where keys may be.
    pub hold: Duration,
    /// The most rows that are read beyond one that is not acknowledged.
    pub window: usize,
}

impl Lanes {
    /// Whether more than one message is sent at a time.
    #[must_use]
    pub const fn are_used(&self) -> bool {
        self.in_flight > 1
    }
}

impl Default for Lanes {
    fn default() -> Self {
        Self { in_flight: 1, hold: Duration::from_secs(60), window: 10_000 }
    }
}

/// What follows when rows become visible behind the position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLateRow {
    /// They are delivered late, in order among themselves.
    #[default]
    Publish,
    /// The relay halts, and an operator decides.
    Halt,
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

/// What follows when the outcome of a request is unknown: its replica ended, or no answer came.
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
