//! Rows of keys that are parked (`on_poison = "park_key"`), as a turn meets them.
//!
//! Promise: while a key is parked, none of its rows is published; each is written down in the transaction that advances over it.
//! The turn knows the parked keys from its own lock's transaction, and only the lock's holder changes them.
//!
//! Rows that are withheld stand between those that are published. So that the acknowledged prefix stays one point, each knows how
//! many published rows come before it: it is passed when these are.

use std::collections::HashMap;

use crate::batch::Batch;
use crate::cursor::parked::NewlyParked;
use crate::position::Position;
use crate::relay::engine::dead_letter::words;
use crate::relay::setup::prepared::PreparedStream;
use crate::sink::{Class, Failure, Published};

/// A turn withholds no more rows or bytes than these: they stay in memory until it ends.
const MOST_ROWS: usize = 1000;
const MOST_BYTES: usize = 8 << 20;

/// Rows of parked keys that a turn has read.
#[derive(Debug, Default)]
pub(in crate::relay) struct Withheld {
    batches: Vec<Batch>,
    keys: Vec<String>,
    /// How many published rows come before each.
    before: Vec<usize>,
    bytes: usize,
}

/// What a turn knows of parked keys, and withholds.
#[derive(Debug)]
pub(in crate::relay) struct Parked<'a> {
    ready: &'a PreparedStream,
    rows: HashMap<String, u64>,
    pub(in crate::relay) withheld: Withheld,
    /// Set at the first row that there is no room for: nothing behind it is published.
    pub(in crate::relay) full: Option<Failure>,
}

impl<'a> Parked<'a> {
    pub(in crate::relay) fn new(ready: &'a PreparedStream, rows: HashMap<String, u64>) -> Self {
        Self { ready, rows, withheld: Withheld::default(), full: None }
    }

    /// How publishing ended: at a row that there is no room for, if it came so far.
    pub(in crate::relay) fn ended(&mut self, published: Published, rows: usize) -> Published {
        let came_so_far = published.stopped.is_none() && published.acknowledged == rows;
        let stopped = self.full.take().filter(|_| came_so_far);
        Published { stopped: published.stopped.or(stopped), ..published }
    }

    /// Whether no more is to be read.
    pub(in crate::relay) fn is_full(&self) -> bool {
        self.full.is_some() || self.withheld.len() >= MOST_ROWS || self.withheld.bytes >= MOST_BYTES
    }

    /// The rows of a batch that may be published, behind `published` others; none is read behind the first for which there is
    /// no room.
    pub(in crate::relay) fn publishable(&mut self, batch: Batch, published: usize) -> Batch {
        let Some(key) = self.ready.key.as_deref().filter(|_| !self.rows.is_empty()) else { return batch };
        let keys: Vec<Option<String>> = batch
            .messages()
            .map(|message| key.of(&message).filter(|key| self.rows.contains_key(&**key)).map(|key| key.into_owned()))
            .collect();
        if keys.iter().all(Option::is_none) {
            return batch;
        }
        let (mut open, mut parked) = (batch.successor(), batch.successor());
        for (row, key) in keys.into_iter().enumerate() {
            match key {
                None => open.copy(&batch, row),
                Some(key) => {
                    if !self.has_room(&key) {
                        break;
                    }
                    parked.copy(&batch, row);
                    self.withheld.keys.push(key);
                    self.withheld.before.push(published + open.len());
                }
            }
        }
        self.withheld.bytes += parked.bytes();
        self.withheld.batches.push(parked);
        open
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
    pub(in crate::relay) fn len(&self) -> usize {
        self.keys.len()
    }

    /// How many of them are passed with the first `published` of the others.
    pub(in crate::relay) fn passed(&self, published: usize) -> usize {
        self.before.partition_point(|before| *before <= published)
    }

    /// The last row that is passed with the first `published` others, if it is one of these.
    pub(in crate::relay) fn end(&self, published: usize) -> Option<Position> {
        let last = self.passed(published).checked_sub(1)?;
        if self.before[last] != published {
            return None;
        }
        let (batch, row) = self.locate(last)?;
        Some(batch.position(row))
    }

    fn locate(&self, mut n: usize) -> Option<(&Batch, usize)> {
        for batch in &self.batches {
            if n < batch.len() {
                return Some((batch, n));
            }
            n -= batch.len();
        }
        None
    }

    /// Those that are passed with the first `published` others, as they are written down.
    pub(in crate::relay) fn written(&self, ready: &PreparedStream, published: usize) -> Option<NewlyParked<'_>> {
        let passed = self.passed(published);
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
