//! Ordered messages of one turn, in a few blocks of memory.
//!
//! Pure. A batch holds the bytes of all its rows together, so that a row costs no allocation of its own.

use std::convert::Infallible;

use crate::message::Message;
use crate::position::{Position, Timestamp};

/// Marks the end of a value that is NULL; no buffer is so large that an end has this bit by itself.
const NULL: usize = 1 << (usize::BITS - 1);

/// Messages in the order in which they must be published.
#[derive(Clone, Debug)]
pub struct Batch {
    fields: usize,
    /// A row that is due at another instant is another message.
    due: bool,
    /// Behind the values of its fields a row has them once more, as JSON.
    typed: bool,
    created_at: Vec<Timestamp>,
    ids: String,
    /// Per row: the end of its id in `ids`.
    id_ends: Vec<usize>,
    values: Vec<u8>,
    /// Per row and field: the end of the value in `values`, with `NULL` where it is NULL.
    ends: Vec<usize>,
}

/// A row that is being appended.
#[derive(Debug)]
pub struct Row<'a> {
    begin: usize,
    values: &'a mut Vec<u8>,
    ends: &'a mut Vec<usize>,
}

impl Row<'_> {
    /// Its next value; none is SQL's NULL.
    pub fn put(&mut self, value: Option<&[u8]>) {
        if let Some(bytes) = value {
            self.values.extend_from_slice(bytes);
        }
        self.ends.push(self.values.len() | if value.is_none() { NULL } else { 0 });
    }

    /// How many bytes its values take so far.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.values.len() - self.begin
    }

    /// Its next value, which `make` appends to what it is given.
    ///
    /// # Errors
    /// What `make` fails with; the row is then not to be used any more.
    pub fn make<T, E>(&mut self, make: impl FnOnce(&mut Vec<u8>) -> Result<T, E>) -> Result<T, E> {
        let made = make(self.values)?;
        self.ends.push(self.values.len());
        Ok(made)
    }
}

impl Batch {
    /// An empty batch whose rows have `fields` values each.
    #[must_use]
    pub fn new(fields: usize) -> Self {
        Self {
            fields,
            due: false,
            typed: false,
            created_at: Vec::new(),
            ids: String::new(),
            id_ends: Vec::new(),
            values: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// The same for rows that become due: what is pushed as `created_at` is when the row is due, and the same row at
    /// another instant is another message.
    #[must_use]
    pub fn of_due_rows(fields: usize) -> Self {
        Self { due: true, ..Self::new(fields) }
    }

    /// An empty batch whose rows have `fields` values each, first as text and then as JSON.
    #[must_use]
    pub fn typed(fields: usize) -> Self {
        Self { typed: true, ..Self::new(fields * 2) }
    }

    /// An empty batch with room for as much as this one holds.
    #[must_use]
    pub fn successor(&self) -> Self {
        Self {
            fields: self.fields,
            due: self.due,
            typed: self.typed,
            created_at: Vec::with_capacity(self.created_at.len()),
            ids: String::with_capacity(self.ids.len()),
            id_ends: Vec::with_capacity(self.id_ends.len()),
            values: Vec::with_capacity(self.values.len()),
            ends: Vec::with_capacity(self.ends.len()),
        }
    }

    /// Makes room for a row of so many bytes: a block that grows by the row and then by a few bytes more is copied into one of
    /// twice its size.
    pub fn make_room(&mut self, bytes: usize) {
        self.values.reserve_exact(bytes);
    }

    /// Appends a row; `values` must yield as many values as the batch has fields.
    pub fn push<'a>(&mut self, created_at: Timestamp, id: &str, values: impl IntoIterator<Item = Option<&'a [u8]>>) {
        let pushed = self.write(created_at, id, |row| {
            values.into_iter().for_each(|value| row.put(value));
            Ok::<_, Infallible>(())
        });
        match pushed {
            Ok(()) => {}
            Err(never) => match never {},
        }
    }

    /// Appends a row whose values `fill` puts, as many as the batch has fields; nothing when it fails.
    ///
    /// # Errors
    /// What `fill` fails with.
    pub fn write<E>(
        &mut self,
        created_at: Timestamp,
        id: &str,
        fill: impl FnOnce(&mut Row<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (values, ends) = (self.values.len(), self.ends.len());
        if let Err(error) = fill(&mut Row { begin: values, values: &mut self.values, ends: &mut self.ends }) {
            self.values.truncate(values);
            self.ends.truncate(ends);
            return Err(error);
        }
        self.ids.push_str(id);
        self.id_ends.push(self.ids.len());
        self.created_at.push(created_at);
        debug_assert_eq!(self.ends.len(), self.created_at.len() * self.fields, "a row has a value for every field");
        Ok(())
    }

    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.created_at.len()
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.created_at.is_empty()
    }

    /// How many bytes ids and values take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.ids.len() + self.values.len()
    }

    /// The row number `row`.
    ///
    /// # Panics
    /// When there is no such row.
    #[must_use]
    pub fn message(&self, row: usize) -> Message<'_> {
        let start = row.checked_sub(1).map_or(0, |before| self.id_ends[before]);
        Message { created_at: self.created_at[row], id: &self.ids[start..self.id_ends[row]], batch: self, row }
    }

    /// Appends the row number `row` of a batch of the same fields.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn copy(&mut self, from: &Self, row: usize) {
        let message = from.message(row);
        self.push(message.created_at, message.id, (0..self.fields).map(|field| from.value(row, field)));
    }

    /// A batch of the row number `row` alone.
    #[must_use]
    pub fn alone(&self, row: usize) -> Self {
        let mut batch = Self { due: self.due, typed: self.typed, ..Self::new(self.fields) };
        batch.copy(self, row);
        batch
    }

    /// All rows in order.
    pub fn messages(&self) -> impl Iterator<Item = Message<'_>> {
        (0..self.len()).map(|row| self.message(row))
    }

    /// The ids in order.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        let mut start = 0;
        self.id_ends.iter().map(move |end| &self.ids[std::mem::replace(&mut start, *end)..*end])
    }

    /// When each row was created.
    #[must_use]
    pub fn instants(&self) -> &[Timestamp] {
        &self.created_at
    }

    /// The position of the row number `row`.
    #[must_use]
    pub fn position(&self, row: usize) -> Position {
        let message = self.message(row);
        Position { created_at: message.created_at, id: Some(message.id.to_owned()) }
    }

    /// Whether its rows become due.
    pub(crate) const fn is_due(&self) -> bool {
        self.due
    }

    /// The value as JSON; none where values have no types.
    pub(crate) fn json(&self, row: usize, field: usize) -> Option<Option<&[u8]>> {
        self.typed.then(|| self.value(row, self.fields / 2 + field))
    }

    pub(crate) fn value(&self, row: usize, field: usize) -> Option<&[u8]> {
        assert!(field < self.fields, "a sink reads only the fields it asked for");
        let index = row * self.fields + field;
        let end = self.ends[index];
        if end & NULL != 0 {
            return None;
        }
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before] & !NULL);
        Some(&self.values[start..end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_as_pushed_with_nulls_and_empty_ones_told_apart() {
        let mut batch = Batch::new(3);
        let at = Timestamp::from_pg_micros;
        batch.push(at(1), "a", [None, Some(&b""[..]), Some(b"x")]);
        batch.push(at(2), "", [Some(&b"yy"[..]), None, None]);
        batch.push(at(2), "c", [None, None, Some(&b"z"[..])]);
        let seen: Vec<_> = batch.messages().map(|m| (m.id, m.value(0), m.value(1), m.value(2))).collect();
        assert_eq!(
            seen,
            [
                ("a", None, Some(&b""[..]), Some(&b"x"[..])),
                ("", Some(&b"yy"[..]), None, None),
                ("c", None, None, Some(&b"z"[..])),
            ]
        );
        for (row, message) in batch.messages().enumerate() {
            let alone = batch.alone(row);
            let values = |m: Message<'_>| (0..3).map(|n| m.value(n).map(<[u8]>::to_vec)).collect::<Vec<_>>();
            assert_eq!((alone.len(), alone.position(0)), (1, batch.position(row)));
            assert_eq!(values(alone.message(0)), values(message));
        }
        assert_eq!(batch.position(2), Position { created_at: at(2), id: Some("c".into()) });
    }

    #[test]
    fn a_row_that_could_not_be_written_leaves_nothing_behind_and_one_without_fields_is_a_row() {
        let at = Timestamp::from_pg_micros;
        let mut batch = Batch::new(2);
        assert!(batch.is_empty() && batch.messages().next().is_none());
        batch.push(at(1), "a", [Some(&b"x"[..]), None]);
        let failed = batch.write(at(2), "b", |row| {
            row.put(Some(b"half"));
            row.make(|out| {
                out.extend_from_slice(b"a quarter");
                Err("no more")
            })
        });
        assert_eq!(failed, Err("no more"));
        batch.push(at(3), "c", [None, Some(&b"y"[..])]);
        let seen: Vec<_> = batch.messages().map(|m| (m.id, m.value(0), m.value(1))).collect();
        assert_eq!(seen, [("a", Some(&b"x"[..]), None), ("c", None, Some(&b"y"[..]))]);
        let mut bare = Batch::new(0);
        bare.push(at(1), "a", []);
        assert_eq!((bare.len(), bare.message(0).id, bare.bytes()), (1, "a", 1));
    }
}
