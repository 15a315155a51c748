//! Rows that a turn passes without publishing them: those of parked keys (`on_poison = "park_key"`), those that a filter leaves
//! out (`where`), those that were acknowledged before (`in_flight`), and those that the sink would refuse
//! (`on_poison = "dead_letter"`), which is known before anything is sent.
//!
//! Promise: while a key is parked, none of its rows is published; each is written down in the transaction that advances over it.
//! The turn knows the parked keys from its own lock's transaction, and only the lock's holder changes them.
//!
//! Rows that are withheld stand between those that are published. So that the acknowledged prefix stays one point, each knows how
//! many published rows come before it: it is passed when these are.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

mod rows;

pub(in crate::relay) use rows::Withheld;

use crate::batch::Batch;
use crate::cursor::ahead::AheadRows;
use crate::cursor::parked::{NewlyParked, ParkedKey};
use crate::message::Message;
use crate::position::Timestamp;
use crate::relay::setup::prepared::PreparedStream;
use crate::relay::stream::turn_trace::TurnTrace;
use crate::sink::{Asked, Class, Failure, Publication, Published};

/// A turn withholds no more rows or bytes than these: they stay in memory until it ends.
const MOST_ROWS: usize = 1000;
const MOST_BYTES: usize = 8 << 20;
/// For each refused row that a turn may pass, so many may be published.
const BETWEEN: usize = 25;

/// What becomes of a row.
enum Fate {
    Published,
    /// It does not match the filter.
    LeftOut,
    /// It was acknowledged before.
    Acknowledged,
    /// Its key is parked.
    Parked(String),
    /// The sink would refuse it: it becomes a dead letter.
    Refused(Failure),
}

/// What a turn knows of parked keys, and withholds.
#[derive(Debug)]
pub(in crate::relay) struct Parked<'a> {
    ready: &'a PreparedStream,
    keys: HashMap<String, ParkedKey>,
    /// Rows that were acknowledged before.
    ahead: Arc<AheadRows>,
    /// Rows that the sink would refuse are looked for, up to so many.
    most_refused: usize,
    /// What was asked for that, once the first rows have been read.
    asked: Option<Asked>,
    pub(in crate::relay) withheld: Withheld,
    /// The most rows that are published; none where all that are read may be.
    most: Option<usize>,
    /// Where rows are noted that are published.
    trace: Option<Arc<TurnTrace>>,
    /// They have been found.
    enough: bool,
    /// How many rows it was given.
    handed_over: usize,
    /// Set at the first row that there is no room for: nothing behind it is published.
    full: Option<Failure>,
    /// The same, at a key that was released: there will be room when its first rows have been sent.
    waits: bool,
}

impl<'a> Parked<'a> {
    pub(in crate::relay) fn new(
        ready: &'a PreparedStream,
        keys: HashMap<String, ParkedKey>,
        most: Option<usize>,
    ) -> Self {
        Self {
            ready,
            keys,
            ahead: Arc::default(),
            most_refused: 0,
            asked: None,
            withheld: Withheld::new(ready.audits()),
            most,
            trace: None,
            enough: false,
            handed_over: 0,
            full: None,
            waits: false,
        }
    }

    /// The same; rows that were acknowledged before are passed.
    pub(in crate::relay) fn passing(self, ahead: Arc<AheadRows>) -> Self {
        Self { ahead, ..self }
    }

    /// The same; rows that are published are noted there.
    pub(in crate::relay) fn traced(self, trace: Option<Arc<TurnTrace>>) -> Self {
        Self { trace, ..self }
    }

    /// The same; up to so many rows that the sink would refuse become dead letters together, instead of one a turn. The record of each
    /// row is made twice then.
    pub(in crate::relay) fn refusing(self, most_refused: usize) -> Self {
        Self { most_refused, ..self }
    }

    /// Which rows of the batch the receiver would refuse, if that is looked for.
    pub(in crate::relay) async fn refusals(
        &mut self,
        batch: &Batch,
        publication: &Publication<'_>,
    ) -> Option<Vec<Option<Failure>>> {
        if self.most_refused == 0 {
            return None;
        }
        // All rows of a turn are read with one snapshot: what the receiver says from now on is younger than each of them.
        let left = self.ready.config.turn.deadline / 5;
        let asked = self.asked.get_or_insert_with(|| Asked { since: Instant::now(), left });
        let room = self.most_refused.saturating_sub(self.withheld.refusals());
        Some(publication.refusals(batch, room, asked).await)
    }

    /// How publishing ended: at a row that there is no room for, if it came so far.
    pub(in crate::relay) fn ended(&mut self, published: Published, rows: usize) -> Published {
        let came_so_far = published.stopped.is_none() && published.acknowledged == rows;
        let stopped = self.full.take().filter(|_| came_so_far);
        Published { stopped: published.stopped.or(stopped), ..published }
    }

    /// How many rows the reading has handed over, whatever became of them.
    pub(in crate::relay) fn handed_over(&self) -> usize {
        self.handed_over
    }

    /// Whether no more is to be read.
    pub(in crate::relay) fn is_full(&self) -> bool {
        self.enough
            || self.full.is_some()
            || self.waits
            || self.withheld.kept() >= MOST_ROWS
            || self.withheld.bytes() >= MOST_BYTES
    }

    /// The rows of a batch that may be published, behind `published` others; none is read behind the first for which there is
    /// no room, or of which it is not known whether it is refused.
    pub(in crate::relay) fn publishable(
        &mut self,
        batch: Batch,
        refusals: Option<Vec<Option<Failure>>>,
        published: usize,
    ) -> Batch {
        let batch = self.not_withheld(batch, refusals, published);
        if let Some(trace) = &self.trace {
            trace.publishes(&batch);
        }
        batch
    }

    fn not_withheld(&mut self, batch: Batch, refusals: Option<Vec<Option<Failure>>>, published: usize) -> Batch {
        self.handed_over += batch.len();
        let (filters, asks) = (self.ready.filters(), refusals.is_some());
        if !filters && !asks && self.ahead.is_empty() && (self.keys.is_empty() || self.ready.key.is_none()) {
            return batch;
        }
        let mut refusals = refusals.unwrap_or_default().into_iter();
        let (mut fates, mut open, mut refused) = (Vec::with_capacity(batch.len()), published, self.withheld.refusals());
        for message in batch.messages() {
            let refusal = if asks { refusals.next() } else { Some(None) };
            let fate = match (self.fate(&message, filters), refusal) {
                (Fate::Published, None) => {
                    self.enough = true;
                    break;
                }
                (Fate::Published, Some(Some(failure))) => Fate::Refused(failure),
                (fate, _) => fate,
            };
            let is_over = match &fate {
                Fate::Published => {
                    self.most.is_some_and(|most| open >= most) || refused > 0 && open >= self.most_between()
                }
                Fate::Refused(_) => refused >= self.most_refused,
                Fate::LeftOut | Fate::Acknowledged | Fate::Parked(_) => false,
            };
            if is_over {
                self.enough = true;
                break;
            }
            match &fate {
                Fate::Published => open += 1,
                Fate::Refused(_) => refused += 1,
                Fate::Parked(key) if !self.has_room(key, message.created_at) => break,
                Fate::LeftOut | Fate::Acknowledged | Fate::Parked(_) => {}
            }
            fates.push(fate);
        }
        if open == published + batch.len() {
            return batch;
        }
        self.withheld.take(&batch, fates, published)
    }

    /// A turn that passes refused rows publishes no more others than these: from the first refused row on its progress is not recorded, and
    /// all would come again if it did not advance.
    const fn most_between(&self) -> usize {
        self.most_refused.saturating_mul(BETWEEN)
    }

    fn fate(&self, message: &Message<'_>, filters: bool) -> Fate {
        if filters && message.value(self.ready.fields.len() - 1) != Some(b"true") {
            return Fate::LeftOut;
        }
        if !self.ahead.is_empty() && self.ahead.contains(&(message.created_at, message.id.to_owned())) {
            return Fate::Acknowledged;
        }
        let key = self.ready.key.as_ref().filter(|_| !self.keys.is_empty()).and_then(|key| key.of(message));
        let held = key.filter(|key| self.holds(key, message)).map(Cow::into_owned);
        held.map_or(Fate::Published, Fate::Parked)
    }

    /// The row that cannot be read, of which only key and place are known: it waits with its key, if that is parked.
    pub(in crate::relay) fn withhold_unread(&mut self, row: &Batch, key: &str) -> bool {
        if !self.holds(key, &row.message(0)) {
            return false;
        }
        if self.has_room(key, row.message(0).created_at) {
            self.withheld.take_unread(row, key);
        }
        true
    }

    /// Whether a row waits with its key. Those before the one that the key waits for have been sent before, and only a seek has led
    /// back there: they go out again, so that they do not come behind it.
    fn holds(&self, key: &str, row: &Message<'_>) -> bool {
        self.keys.get(key).is_some_and(|parked| {
            let before = row.created_at < parked.since
                || row.created_at == parked.since
                    && self.ready.shape.id_type.is_before(row.id, &parked.since_id) == Some(true);
            parked.released || !before
        })
    }

    /// Counts a row of a parked key, if it may wait with the others.
    fn has_room(&mut self, key: &str, created_at: Timestamp) -> bool {
        let most = self.ready.config.parking.rows;
        let Some(parked) = self.keys.get_mut(key) else { return true };
        // A seek has led back to it: it stands there.
        if parked.until.is_some_and(|until| created_at <= until) {
            return true;
        }
        if parked.rows >= most && parked.released {
            self.waits = true;
            return false;
        }
        if parked.rows >= most {
            let message = format!("{most} rows of one parked key wait already, which is park_limit");
            let hint = format!(
                "`outbox-relay dead-letter list --cursor {}` names what they wait for, with the number of rows: redrive or discard it. \
                 Then resume the cursor.",
                self.ready.config.name
            );
            self.full = Some(Failure::of(Class::Fatal, "park_limit", message, hint));
            return false;
        }
        parked.rows += 1;
        true
    }
}

/// What an advance parks.
pub(in crate::relay) struct Parks<'a> {
    /// The number of the dead letter whose key is parked, and the key.
    pub(in crate::relay) key: Option<(usize, &'a str)>,
    /// Rows of keys that are parked already.
    pub(in crate::relay) rows: Option<NewlyParked<'a>>,
}

#[cfg(test)]
mod tests;
