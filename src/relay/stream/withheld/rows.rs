//! The rows that a turn has read and does not publish, among those that it does.

use std::collections::VecDeque;

use super::Fate;
use crate::audit::{Sums, element};
use crate::batch::Batch;
use crate::cursor::parked::NewlyParked;
use crate::message::Message;
use crate::position::Position;
use crate::relay::engine::dead_letter::words;
use crate::relay::setup::prepared::PreparedStream;
use crate::sink::Failure;

/// Rows that a turn has read and does not publish.
#[derive(Debug, Default)]
pub(in crate::relay) struct Withheld {
    /// Those of parked keys, their keys, and how many published rows come before each.
    batches: Vec<Batch>,
    keys: Vec<String>,
    before: Vec<usize>,
    bytes: usize,
    /// Those that the sink would refuse, how many published rows come before each, and why.
    refused: Vec<Batch>,
    reasons: Vec<(usize, Failure)>,
    /// None of the values of rows of parked keys could be read.
    unread: bool,
    /// All of them, together with those behind the same published row.
    over: VecDeque<Over>,
    /// How many there are.
    rows: usize,
    /// How many stand before published rows that have been released.
    released: usize,
    /// Over the ids of these, as far as the sink was to get them, where it is asked for.
    sums: Option<Sums>,
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
    /// Over the ids of these rows that the sink was to get.
    sums: Option<Box<Sums>>,
}

impl Withheld {
    /// Nothing yet; `sums` says whether [`Self::sums`] will be asked for.
    pub(super) fn new(sums: bool) -> Self {
        Self { sums: sums.then(Sums::default), ..Self::default() }
    }

    /// Takes those rows of a batch that are not published; the others are what it gives back.
    pub(super) fn take(&mut self, batch: &Batch, fates: impl IntoIterator<Item = Fate>, published: usize) -> Batch {
        let mut open = batch.successor();
        let (mut parked, mut refused) = (None, None);
        for (row, fate) in fates.into_iter().enumerate() {
            let is_meant = !matches!(fate, Fate::LeftOut);
            match fate {
                Fate::Published => {
                    open.copy(batch, row);
                    continue;
                }
                Fate::LeftOut | Fate::Acknowledged => {}
                Fate::Parked(key) => {
                    parked.get_or_insert_with(|| batch.successor()).copy(batch, row);
                    self.keys.push(key);
                    self.before.push(published + open.len());
                }
                Fate::Refused(failure) => {
                    refused.get_or_insert_with(|| batch.successor()).copy(batch, row);
                    self.reasons.push((published + open.len(), failure));
                }
            }
            self.passes(published + open.len(), batch.position(row), is_meant);
        }
        self.bytes += parked.iter().chain(&refused).map(Batch::bytes).sum::<usize>();
        self.batches.extend(parked);
        self.refused.extend(refused);
        open
    }

    /// The row that cannot be read, whose key is parked.
    pub(super) fn take_unread(&mut self, row: &Batch, key: &str) {
        self.keys.push(key.to_owned());
        self.before.push(0);
        self.batches.push(row.clone());
        self.passes(0, row.position(0), true);
        self.unread = true;
    }

    /// How many rows it keeps to be written down.
    pub(super) fn kept(&self) -> usize {
        self.keys.len() + self.reasons.len()
    }

    /// How many bytes these have.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether there are rows that the sink would refuse. What is recorded of a turn's progress must not pass them: only the advance
    /// writes them down.
    pub(in crate::relay) fn refuses(&self) -> bool {
        !self.reasons.is_empty()
    }

    /// How many they are.
    pub(super) fn refusals(&self) -> usize {
        self.reasons.len()
    }

    /// The rows that the sink would refuse and that are passed with the first `published` others: how many of these come before each, and why.
    pub(in crate::relay) fn refused(&self, published: usize) -> impl Iterator<Item = (Message<'_>, usize, &Failure)> {
        let rows = self.refused.iter().flat_map(Batch::messages).zip(&self.reasons);
        rows.take_while(move |(_, (before, _))| *before <= published).map(|(row, (n, failure))| (row, *n, failure))
    }

    /// How many rows are not published.
    pub(in crate::relay) fn rows(&self) -> usize {
        self.rows
    }

    /// One more row is not published, behind so many that are; `is_meant` says whether the sink was to get it.
    fn passes(&mut self, before: usize, last: Position, is_meant: bool) {
        self.rows += 1;
        let (rows, sums) = (self.rows, is_meant && self.sums.is_some());
        let id = last.id.as_deref().filter(|_| sums).map(element);
        match self.over.back_mut().filter(|over| over.before == before) {
            Some(over) => (over.rows, over.last) = (rows, last),
            None => self.over.push_back(Over { before, rows, last, sums: None }),
        }
        if let (Some(id), Some(over)) = (id, self.over.back_mut()) {
            over.sums.get_or_insert_default().add(id);
        }
    }

    /// The first `acknowledged` published rows are passed, whatever comes: what stands before the last of them need not be known
    /// any more.
    pub(in crate::relay) fn release(&mut self, acknowledged: usize) {
        while let Some(over) = self.over.front().filter(|over| over.before < acknowledged) {
            self.released = over.rows;
            if let (Some(sums), Some(more)) = (&mut self.sums, &over.sums) {
                sums.merge(more);
            }
            self.over.pop_front();
        }
    }

    /// How many of them are passed with the first `published` of the others, which are no fewer than have been released.
    pub(in crate::relay) fn passed(&self, published: usize) -> usize {
        self.last(published).map_or(self.released, |over| over.rows)
    }

    /// Sums over the ids of those among them that the sink was to get; none where they are not taken.
    pub(in crate::relay) fn sums(&self, published: usize) -> Option<Sums> {
        let mut sums = self.sums.clone()?;
        let passed = self.over.iter().take_while(|over| over.before <= published);
        passed.filter_map(|over| over.sums.as_deref()).for_each(|more| sums.merge(more));
        Some(sums)
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
        self.parked(ready.config.source.table().to_string(), words(&ready.fields), published)
    }

    pub(super) fn parked(&self, source: String, fields: Vec<String>, published: usize) -> Option<NewlyParked<'_>> {
        let passed = self.before.partition_point(|before| *before <= published);
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
