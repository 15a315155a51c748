//! Rows of keys that are parked (`on_poison = "park_key"`), as a turn meets them.
//!
//! Promise: while a key is parked, none of its rows is published; each is written down in the transaction that advances over it.
//! The turn knows the parked keys from its own lock's transaction, and only the lock's holder changes them.
//!
//! Rows that are withheld stand between those that are published. So that the acknowledged prefix stays one point, each knows how
//! many published rows come before it: it is passed when these are.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::batch::Batch;
use crate::cursor::parked::{NewlyParked, ParkedKey};
use crate::message::Message;
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
    /// None of their values could be read.
    unread: bool,
}

/// What a turn knows of parked keys, and withholds.
#[derive(Debug)]
pub(in crate::relay) struct Parked<'a> {
    ready: &'a PreparedStream,
    keys: HashMap<String, ParkedKey>,
    pub(in crate::relay) withheld: Withheld,
    /// Set at the first row that there is no room for: nothing behind it is published.
    pub(in crate::relay) full: Option<Failure>,
    /// The same, at a key that was released: there will be room when its first rows have been sent.
    waits: bool,
}

impl<'a> Parked<'a> {
    pub(in crate::relay) fn new(ready: &'a PreparedStream, keys: HashMap<String, ParkedKey>) -> Self {
        Self { ready, keys, withheld: Withheld::default(), full: None, waits: false }
    }

    /// How publishing ended: at a row that there is no room for, if it came so far.
    pub(in crate::relay) fn ended(&mut self, published: Published, rows: usize) -> Published {
        let came_so_far = published.stopped.is_none() && published.acknowledged == rows;
        let stopped = self.full.take().filter(|_| came_so_far);
        Published { stopped: published.stopped.or(stopped), ..published }
    }

    /// Whether no more is to be read.
    pub(in crate::relay) fn is_full(&self) -> bool {
        self.full.is_some() || self.waits || self.withheld.len() >= MOST_ROWS || self.withheld.bytes >= MOST_BYTES
    }

    /// The rows of a batch that may be published, behind `published` others; none is read behind the first for which there is
    /// no room.
    pub(in crate::relay) fn publishable(&mut self, batch: Batch, published: usize) -> Batch {
        let Some(key) = self.ready.key.as_deref().filter(|_| !self.keys.is_empty()) else { return batch };
        let keys: Vec<Option<String>> = batch
            .messages()
            .map(|message| key.of(&message).filter(|key| self.holds(key, &message)).map(Cow::into_owned))
            .collect();
        if keys.iter().all(Option::is_none) {
            return batch;
        }
        let room = keys.iter().position(|key| key.as_ref().is_some_and(|key| !self.has_room(key)));
        self.withheld.take(&batch, keys.into_iter().take(room.unwrap_or(usize::MAX)), published)
    }

    /// The row that cannot be read, of which only key and place are known: it waits with its key, if that is parked.
    pub(in crate::relay) fn withhold_unread(&mut self, row: &Batch, key: &str) -> bool {
        if !self.holds(key, &row.message(0)) {
            return false;
        }
        if self.has_room(key) {
            self.withheld.keys.push(key.to_owned());
            self.withheld.before.push(0);
            self.withheld.batches.push(row.clone());
            self.withheld.unread = true;
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
    fn has_room(&mut self, key: &str) -> bool {
        let most = self.ready.config.parking.rows;
        let Some(parked) = self.keys.get_mut(key) else { return true };
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

impl Withheld {
    /// Takes those rows of a batch that have one of these keys; the others are what it gives back.
    fn take(&mut self, batch: &Batch, keys: impl Iterator<Item = Option<String>>, published: usize) -> Batch {
        let (mut open, mut parked) = (batch.successor(), batch.successor());
        for (row, key) in keys.enumerate() {
            let Some(key) = key else {
                open.copy(batch, row);
                continue;
            };
            parked.copy(batch, row);
            self.keys.push(key);
            self.before.push(published + open.len());
        }
        self.bytes += parked.bytes();
        self.batches.push(parked);
        open
    }

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
        self.rows(ready.config.source.table().to_string(), words(&ready.fields), published)
    }

    fn rows(&self, source: String, fields: Vec<String>, published: usize) -> Option<NewlyParked<'_>> {
        let passed = self.passed(published);
        let mut new =
            NewlyParked { source, fields: if self.unread { Vec::new() } else { fields }, ..NewlyParked::default() };
        let messages = self.batches.iter().flat_map(Batch::messages);
        for (message, key) in messages.zip(&self.keys).take(passed) {
            let before = new.values.len();
            new.values.extend((0..new.fields.len()).map(|field| message.value(field)));
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::position::Timestamp;
    use crate::relay::stream::turn_buffer::Kept;

    type Keys = Vec<Vec<Option<u8>>>;

    /// Batches of rows that are numbered from 0, each with its number as id, place and value; those with a key are withheld.
    fn taken(keys: &Keys) -> (Kept, Withheld, Vec<Option<u8>>) {
        let (mut kept, mut withheld, mut row) = (Kept::default(), Withheld::default(), 0);
        for keys in keys {
            let mut batch = Batch::new(1);
            for _ in keys {
                let id = row.to_string();
                batch.push(Timestamp::from_pg_micros(row), &id, [Some(id.as_bytes())]);
                row += 1;
            }
            let words = keys.iter().map(|key| key.map(|key| key.to_string()));
            let open = withheld.take(&batch, words, kept.rows());
            kept.keep(open);
        }
        (kept, withheld, keys.concat())
    }

    proptest! {
        // Guarantee: parked.order
        #[test]
        fn what_is_passed_is_one_prefix_of_the_rows_whatever_is_acknowledged(
            keys in prop::collection::vec(prop::collection::vec(prop::option::of(0_u8..3), 0..6), 0..6),
        ) {
            let (kept, withheld, all) = taken(&keys);
            prop_assert_eq!(kept.rows() + withheld.len(), all.len(), "no row is lost, and none is there twice");
            for acknowledged in 0..=kept.rows() {
                let published = (0..acknowledged).map(|n| kept.locate(n).expect("kept")).map(|(batch, row)| batch.message(row).id.to_owned());
                let written = withheld.rows(String::new(), vec!["value".to_owned()], acknowledged).unwrap_or_default();
                prop_assert_eq!(written.ids.len(), withheld.passed(acknowledged));
                let values: Vec<_> = written.values.iter().map(|value| value.expect("not NULL")).collect();
                prop_assert_eq!(values, written.ids.iter().map(|id| id.as_bytes()).collect::<Vec<_>>(), "whole, and its own");
                for (id, key) in written.ids.iter().zip(&written.keys) {
                    let known = all[id.parse::<usize>().expect("a number")].map(|key| key.to_string());
                    prop_assert_eq!(known.as_deref(), Some(*key));
                }
                let mut passed: Vec<usize> = published
                    .chain(written.ids.iter().map(|id| (*id).to_owned()))
                    .map(|id| id.parse().expect("a number"))
                    .collect();
                passed.sort_unstable();
                prop_assert_eq!(&passed, &(0..passed.len()).collect::<Vec<_>>(), "a prefix");
                prop_assert!(all.get(passed.len()).is_none_or(Option::is_none), "up to the next row that is to be published");
                let end = withheld.end(acknowledged).or_else(|| kept.end(acknowledged));
                let last = passed.last().map(usize::to_string);
                prop_assert_eq!(end.and_then(|end| end.id), last, "and its end is its last row");
            }
        }
    }
}
