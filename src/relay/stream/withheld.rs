//! Rows that a turn passes without publishing them: those of parked keys (`on_poison = "park_key"`), and those that a filter leaves
//! out (`where`).
//!
//! Promise: while a key is parked, none of its rows is published; each is written down in the transaction that advances over it.
//! The turn knows the parked keys from its own lock's transaction, and only the lock's holder changes them.
//!
//! Rows that are withheld stand between those that are published. So that the acknowledged prefix stays one point, each knows how
//! many published rows come before it: it is passed when these are.

use std::collections::{HashMap, VecDeque};

use crate::batch::Batch;
use crate::cursor::parked::NewlyParked;
use crate::message::Message;
use crate::position::Position;
use crate::relay::engine::dead_letter::words;
use crate::relay::setup::prepared::PreparedStream;
use crate::sink::{Class, Failure, Published};

/// A turn withholds no more rows or bytes than these: they stay in memory until it ends.
const MOST_ROWS: usize = 1000;
const MOST_BYTES: usize = 8 << 20;

/// Rows that a turn has read and does not publish.
#[derive(Debug, Default)]
pub(in crate::relay) struct Withheld {
    /// Those of parked keys, their keys, and how many published rows come before each.
    batches: Vec<Batch>,
    keys: Vec<String>,
    before: Vec<usize>,
    bytes: usize,
    /// All of them, together with those behind the same published row.
    over: VecDeque<Over>,
    /// How many there are.
    rows: usize,
    /// How many stand before published rows that have been released.
    released: usize,
}

/// Rows in a row that are not published.
#[derive(Debug)]
struct Over {
    /// How many published rows come before them.
    before: usize,
    /// How many rows are not published up to the last of them.
    rows: usize,
    /// The last of them.
    last: Position,
}

/// What becomes of a row.
enum Fate {
    Published,
    /// It does not match the filter.
    LeftOut,
    /// Its key is parked.
    Parked(String),
}

/// What a turn knows of parked keys, and withholds.
#[derive(Debug)]
pub(in crate::relay) struct Parked<'a> {
    ready: &'a PreparedStream,
    rows: HashMap<String, u64>,
    pub(in crate::relay) withheld: Withheld,
    /// The most rows that are published; none where all that are read may be.
    most: Option<usize>,
    /// They have been found.
    enough: bool,
    /// Set at the first row that there is no room for: nothing behind it is published.
    full: Option<Failure>,
}

impl<'a> Parked<'a> {
    pub(in crate::relay) fn new(ready: &'a PreparedStream, rows: HashMap<String, u64>, most: Option<usize>) -> Self {
        Self { ready, rows, withheld: Withheld::default(), most, enough: false, full: None }
    }

    /// How publishing ended: at a row that there is no room for, if it came so far.
    pub(in crate::relay) fn ended(&mut self, published: Published, rows: usize) -> Published {
        let came_so_far = published.stopped.is_none() && published.acknowledged == rows;
        let stopped = self.full.take().filter(|_| came_so_far);
        Published { stopped: published.stopped.or(stopped), ..published }
    }

    /// Whether no more is to be read.
    pub(in crate::relay) fn is_full(&self) -> bool {
        self.enough || self.full.is_some() || self.withheld.keys.len() >= MOST_ROWS || self.withheld.bytes >= MOST_BYTES
    }

    /// The rows of a batch that may be published, behind `published` others; none is read behind the first for which there is
    /// no room.
    pub(in crate::relay) fn publishable(&mut self, batch: Batch, published: usize) -> Batch {
        let filters = self.ready.filters();
        if !filters && (self.rows.is_empty() || self.ready.key.is_none()) {
            return batch;
        }
        let fates: Vec<Fate> = batch.messages().map(|message| self.fate(&message, filters)).collect();
        let fits = self.most.is_none_or(|most| published + batch.len() <= most);
        if fits && fates.iter().all(|fate| matches!(fate, Fate::Published)) {
            return batch;
        }
        let (mut open, mut parked) = (batch.successor(), batch.successor());
        for (row, fate) in fates.into_iter().enumerate() {
            match fate {
                Fate::Published if self.most.is_some_and(|most| published + open.len() >= most) => {
                    self.enough = true;
                    break;
                }
                Fate::Published => {
                    open.copy(&batch, row);
                    continue;
                }
                Fate::LeftOut => {}
                Fate::Parked(key) => {
                    if !self.has_room(&key) {
                        break;
                    }
                    parked.copy(&batch, row);
                    self.withheld.keys.push(key);
                    self.withheld.before.push(published + open.len());
                }
            }
            self.withheld.passes(published + open.len(), batch.position(row));
        }
        self.withheld.bytes += parked.bytes();
        self.withheld.batches.push(parked);
        open
    }

    fn fate(&self, message: &Message<'_>, filters: bool) -> Fate {
        if filters && message.value(self.ready.fields.len() - 1) != Some(b"true") {
            return Fate::LeftOut;
        }
        let key = self.ready.key.as_ref().filter(|_| !self.rows.is_empty()).and_then(|key| key.of(message));
        key.filter(|key| self.rows.contains_key(&**key)).map_or(Fate::Published, |key| Fate::Parked(key.into_owned()))
    }

    /// Counts a row of a parked key, if it may wait with the others.
    fn has_room(&mut self, key: &str) -> bool {
        let most = self.ready.config.parking.rows;
        let Some(rows) = self.rows.get_mut(key) else { return true };
        if *rows >= most {
            let message = format!("{most} rows of one parked key wait already, which is park_limit");
            let hint = format!(
                "`outbox-relay dead-letter list --cursor {}` names what they wait for, with the number of rows: redrive or discard it. \
                 Then resume the cursor.",
                self.ready.config.name
            );
            self.full = Some(Failure::of(Class::Fatal, "park_limit", message, hint));
            return false;
        }
        *rows += 1;
        true
    }
}

impl Withheld {
    /// How many rows are not published.
    pub(in crate::relay) fn rows(&self) -> usize {
        self.rows
    }

    /// One more row is not published, behind so many that are.
    fn passes(&mut self, before: usize, last: Position) {
        self.rows += 1;
        let rows = self.rows;
        match self.over.back_mut().filter(|over| over.before == before) {
            Some(over) => (over.rows, over.last) = (rows, last),
            None => self.over.push_back(Over { before, rows, last }),
        }
    }

    /// The first `acknowledged` published rows are passed, whatever comes: what stands before the last of them need not be known
    /// any more.
    pub(in crate::relay) fn release(&mut self, acknowledged: usize) {
        while let Some(over) = self.over.front().filter(|over| over.before < acknowledged) {
            self.released = over.rows;
            self.over.pop_front();
        }
    }

    /// How many of them are passed with the first `published` of the others, which are no fewer than have been released.
    pub(in crate::relay) fn passed(&self, published: usize) -> usize {
        self.last(published).map_or(self.released, |over| over.rows)
    }

    /// The last row that is passed with the first `published` others, if it is one of these.
    pub(in crate::relay) fn end(&self, published: usize) -> Option<Position> {
        self.last(published).filter(|over| over.before == published).map(|over| over.last.clone())
    }

    fn last(&self, published: usize) -> Option<&Over> {
        self.over.partition_point(|over| over.before <= published).checked_sub(1).and_then(|last| self.over.get(last))
    }

    /// Those of parked keys that are passed with the first `published` others, as they are written down.
    pub(in crate::relay) fn written(&self, ready: &PreparedStream, published: usize) -> Option<NewlyParked<'_>> {
        let passed = self.before.partition_point(|before| *before <= published);
        let mut new = NewlyParked {
            source: ready.config.source.table().to_string(),
            fields: words(&ready.fields),
            ..NewlyParked::default()
        };
        let messages = self.batches.iter().flat_map(Batch::messages);
        for (message, key) in messages.zip(&self.keys).take(passed) {
            let before = new.values.len();
            new.values.extend((0..ready.fields.len()).map(|field| message.value(field)));
            let bytes: usize = new.values[before..].iter().flatten().map(|value| value.len()).sum();
            new.bytes.push(i64::try_from(bytes).unwrap_or(i64::MAX));
            new.keys.push(key);
            new.instants.push(message.created_at);
            new.ids.push(message.id);
        }
        (passed > 0).then_some(new)
    }
}

/// What an advance parks.
pub(in crate::relay) struct Parks<'a> {
    /// The key of the row that becomes a dead letter.
    pub(in crate::relay) key: Option<&'a str>,
    /// Rows of keys that are parked already.
    pub(in crate::relay) rows: Option<NewlyParked<'a>>,
}
