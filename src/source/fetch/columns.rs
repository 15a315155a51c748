//! What a row of a page is made of, and how it becomes a row of a batch.

use tokio_postgres::{Column, Row, Statement};

use super::document::{self, Document, Malformed, Style};
use super::{FetchError, Request, Unreadable};
use crate::batch::{self, Batch};
use crate::database::codec::{Raw, Wire};
use crate::message::Field;
use crate::position::{Position, Timestamp};
use crate::source::shape::Shape;

/// Instant and id.
const BEFORE: usize = 2;

/// For a row of more bytes than this, room is made before it is copied.
const LARGE: usize = 64 * 1024;

/// Why a row cannot be appended.
enum Unread {
    Value(tokio_postgres::Error),
    Document(Malformed),
    /// So many bytes.
    Large(usize),
}

impl From<tokio_postgres::Error> for Unread {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Value(error)
    }
}

impl From<Malformed> for Unread {
    fn from(malformed: Malformed) -> Self {
        Self::Document(malformed)
    }
}

/// The columns of a statement.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Columns {
    fields: usize,
    /// The most bytes that may come of a row.
    most: usize,
    /// Which field is made of the columns behind the others, and how.
    document: Option<(usize, Document)>,
}

impl Columns {
    /// Of a statement with the text of `request`; none when it has columns now whose JSON only PostgreSQL can make, or, where
    /// PostgreSQL makes it of listed columns, others than these.
    pub(super) fn new(request: &Request<'_>, statement: &Statement) -> Option<Self> {
        let (fields, most) = (request.fields.len(), request.texts.most);
        let place = request.fields.iter().position(|field| request.texts.in_parts && field.is_document());
        let Some(place) = place else {
            let named: Vec<_> = statement.columns().iter().skip(BEFORE + fields).map(Column::name).collect();
            let known = &request.shape.columns;
            let is_whole = named.len() == known.len() && named.iter().all(|name| known.contains_key(*name));
            let asked = request.fields.contains(&Field::Debezium(None));
            return (is_whole || !asked).then_some(Self { fields, most, document: None });
        };
        let parts = statement.columns().iter().skip(BEFORE + fields - 1);
        let style = Style::of(&request.fields[place]);
        let document =
            Document::new(parts.map(|column| (column.name(), column.type_().oid(), column.type_modifier())), style)?;
        Some(Self { fields, most, document: Some((place, document)) })
    }

    /// Appends a row; gives its size.
    pub(super) fn push(&self, batch: &mut Batch, row: &Row) -> Result<usize, FetchError> {
        let created_at: Timestamp = row.try_get(0)?;
        let id: &str = row.try_get(1)?;
        let (before, raw) = (batch.bytes(), row.raw_size_bytes());
        if raw > LARGE {
            // As JSON it is a little longer.
            batch.make_room(raw + raw / 16 + LARGE);
        }
        let position = || Position { created_at, id: Some(id.to_owned()) };
        batch.write(created_at, id, |values| self.values(row, values)).map_err(|unread| match unread {
            Unread::Value(error) => error.into(),
            Unread::Document(reason) => FetchError::Unreadable(Unreadable::Malformed { position: position(), reason }),
            Unread::Large(bytes) => FetchError::Unreadable(Unreadable::large(position(), bytes, self.most)),
        })?;
        Ok(batch.bytes() - before)
    }

    fn values(&self, row: &Row, values: &mut batch::Row<'_>) -> Result<(), Unread> {
        let (mut column, mut unwritten) = (BEFORE, 0);
        for field in 0..self.fields {
            match &self.document {
                Some((place, document)) if *place == field => {
                    let parts = BEFORE + self.fields - 1;
                    let part = |number| {
                        let wire: Option<Wire<'_>> = row.try_get(parts + number)?;
                        Ok::<_, Unread>(wire.map(|wire| wire.0))
                    };
                    unwritten = values.make(|out| document.write(part, self.most, out))?;
                }
                _ => {
                    values.put(row.try_get::<_, Option<Raw<'_>>>(column)?.map(|raw| raw.0));
                    column += 1;
                }
            }
            // Of a short value PostgreSQL may have made a long text, and of a text a longer string of JSON.
            let bytes = values.bytes() + unwritten;
            if bytes > self.most {
                return Err(Unread::Large(bytes));
            }
        }
        Ok(())
    }
}

/// The most columns of a JSON object that is read in parts, and fields beside it: a statement may have 1,664, and columns may be
/// added behind the catalog's back.
const MOST_PARTS: usize = 1_000;

/// Whether there is one JSON object among the fields, of columns that all have types which are written here.
pub(super) fn is_made_here(shape: &Shape, fields: &[Field]) -> bool {
    if !shape.config.filter.is_empty() {
        // Of rows that do not match no value is read, which only PostgreSQL can leave out.
        return false;
    }
    let mut documents = fields.iter().filter(|field| field.is_document());
    let (Some(document), None) = (documents.next(), documents.next()) else { return false };
    let style = Style::of(document);
    let parts = match document {
        Field::Columns(columns) | Field::Debezium(Some(columns)) => {
            columns.iter().map(|name| shape.columns.get(name)).collect::<Option<Vec<_>>>()
        }
        _ => Some(shape.columns.values().collect()),
    };
    parts.is_some_and(|parts| {
        parts.len() + fields.len() <= MOST_PARTS && parts.iter().all(|column| document::is_made_here(column.oid, style))
    })
}
