//! What is to be read, and how much.

use std::collections::BTreeSet;
use std::time::Duration;

use super::SweepRequest;
use super::columns::is_made_here;
use crate::database::Server;
use crate::message::Field;
use crate::position::{Position, Timestamp};
use crate::source::shape::{After, Shape};

/// How much one fetch may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The most rows.
    pub rows: usize,
    /// The most bytes; the row that passes it is the last.
    pub bytes: usize,
    /// The most bytes to expect of what is asked for at a time: what is left of it is thrown away when the time is over.
    pub page: usize,
    /// The longest time.
    pub time: Duration,
}

/// The statements of a fetch as text, made once for many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Texts {
    /// The table's name.
    pub(in crate::source) table: String,
    pub(super) begin: String,
    /// The rows after a row.
    pub(super) page: String,
    /// The JSON object among the fields is read as its columns, and made here.
    pub(super) in_parts: bool,
    /// The most bytes of a row; a larger one is not read.
    pub(super) most: usize,
    /// Whether a row came late, and which rows did.
    pub(super) late: [String; 2],
}

impl Texts {
    /// For a table, and what is read of each row that takes no more than `most` bytes.
    #[must_use]
    pub fn new(shape: &Shape, fields: &[Field], most: usize) -> Self {
        let (table, begin, in_parts) = (shape.config.table.quoted(), shape.begin_sql(), is_made_here(shape, fields));
        let late = [shape.is_any_late_sql(), shape.late_sql()];
        let mut texts = Self { table, begin, page: String::new(), in_parts, most, late };
        texts.page = texts.first(shape, fields, After::Row);
        texts
    }

    /// The rows after a position of that form.
    pub(super) fn first(&self, shape: &Shape, fields: &[Field], after: After) -> String {
        let most = Some(self.most);
        if self.in_parts { shape.parts_sql(fields, after, most) } else { shape.fetch_sql(fields, after, most) }
    }
}

/// What to read.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The table.
    pub shape: &'a Shape,
    /// The server that the horizon is of.
    pub server: &'a Server,
    /// What of each row.
    pub fields: &'a [Field],
    /// The statements for both.
    pub texts: &'a Texts,
    /// The fields are columns whose values are used in the types that the shape says: no row is handed over when they have
    /// others.
    pub typed: bool,
    /// After which position; `None` is before every row.
    pub after: Option<&'a Position>,
    /// Of whose rows at or below that position to find those that came late, and since when; none: they are not looked for.
    pub sweep: Option<SweepRequest<'a>>,
    /// Below which instant.
    pub horizon: Timestamp,
    /// The relations that the cursor has known so far; `None` for a new cursor, and for rows read ahead: the turn that takes
    /// them sees to it that the cursor has known these partitions, and no other.
    pub known: Option<&'a BTreeSet<u32>>,
    /// The table's oid that the cursor has known so far.
    pub root: Option<u32>,
    /// How much.
    pub budget: Budget,
    /// How large rows are, by the last fetch.
    pub sizes: Sizes,
    /// Readings have taken too long again and again: whether the first row alone takes longer than this.
    pub alone: Option<Duration>,
}

/// How large rows are, in bytes; 0 when nothing is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// The largest.
    pub largest: usize,
    /// On average.
    pub mean: usize,
}
