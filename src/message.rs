//! One unit to publish, and what a sink asks to be read for it.
//!
//! Pure. A sink names the [`Field`]s that it needs; the source reads exactly these from each row, in that order, and
//! nothing else leaves the database.

use crate::position::Timestamp;

/// One value that a sink needs of every row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// The whole row as one JSON object, as PostgreSQL's `row_to_json` makes it: ids above 2^53 stay as they are.
    Row,
    /// The named columns as one JSON object, made alike.
    Columns(Vec<String>),
    /// The named columns, or the whole row, as one JSON object with the values that Debezium's connector for PostgreSQL makes of them.
    Debezium(Option<Vec<String>>),
    /// A column in PostgreSQL's own text form.
    Text(String),
    /// A payload column: `bytea` as its bytes, every other type as its text.
    Payload(String),
    /// Whether the row is delivered, `true` or `false`; of one that is not, the other fields are NULL.
    Matches,
}

impl Field {
    /// Whether it is a JSON object of columns.
    #[must_use]
    pub const fn is_document(&self) -> bool {
        matches!(self, Self::Row | Self::Columns(_) | Self::Debezium(_))
    }
}

impl std::fmt::Display for Field {
    /// One word, the same for the same field.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Row => f.write_str("row"),
            Self::Columns(columns) => write!(f, "columns {columns:?}"),
            Self::Debezium(None) => f.write_str("debezium row"),
            Self::Debezium(Some(columns)) => write!(f, "debezium columns {columns:?}"),
            Self::Text(column) => write!(f, "text {column:?}"),
            Self::Payload(column) => write!(f, "payload {column:?}"),
            Self::Matches => f.write_str("matches"),
        }
    }
}

/// The type of a column, as far as it takes to hand its text back to PostgreSQL.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ColumnType {
    /// As SQL, with its schema where it needs one.
    pub name: String,
    /// Its oid.
    pub oid: u32,
    /// Its array type's oid, and what stands between the elements of an array's text; none for an array.
    pub array: Option<(u32, char)>,
}

/// A row, ready to publish: a view into a [`crate::batch::Batch`].
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// When the row was created, by its own column.
    pub created_at: Timestamp,
    /// The row's id as text; unique within its table at that instant.
    pub id: &'a str,
    pub(crate) batch: &'a crate::batch::Batch,
    pub(crate) row: usize,
}

/// A value as a template is given it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplateValue<'a> {
    /// Text, whatever the text holds.
    Text(&'a [u8]),
    /// JSON, whose lists, objects and numbers the template can use as such.
    Json(&'a [u8]),
}

impl<'a> Message<'a> {
    /// When the row was due; none for a row that is a message only once. With [`Self::id`] it names the message for a
    /// receiver that drops repeats.
    #[must_use]
    pub fn due_at(&self) -> Option<Timestamp> {
        self.batch.is_due().then_some(self.created_at)
    }

    /// The same for a template: as JSON where the batch holds values with their types; `None` is NULL.
    ///
    /// # Panics
    /// As for [`Self::value`].
    #[must_use]
    pub fn given(&self, field: usize) -> Option<TemplateValue<'a>> {
        match self.batch.json(self.row, field) {
            Some(json) => json.map(TemplateValue::Json),
            None => self.value(field).map(TemplateValue::Text),
        }
    }

    /// The value of the sink's field number `field`; `None` is SQL's NULL.
    ///
    /// # Panics
    /// When the sink did not ask for that many fields.
    #[must_use]
    pub fn value(&self, field: usize) -> Option<&'a [u8]> {
        self.batch.value(self.row, field)
    }
}
