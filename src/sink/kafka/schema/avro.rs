//! Avro: a row's JSON in the binary form of a schema.
//!
//! Promise: what is written is what the row says, or nothing is. A number out of its type's range, a decimal with more digits than the
//! schema has, a text that is no date, a field that is missing and has no default: each is a misfit that names its field. The schema is
//! judged once, when it is read: one with a union of which a JSON value does not say the branch is refused as a whole.

use std::collections::HashMap;

use super::SchemaField;
use super::json::{Json, Kind};
use super::misfit::Misfit;
use super::moment::Unit;

mod compile;
mod scalar;
mod write;

/// So many levels of a row are read; each takes a part of the thread's stack.
pub(super) const DEEPEST: usize = 64;

/// What a value of the schema is written as.
#[derive(Clone, Debug)]
enum Node {
    Null,
    Boolean,
    Int,
    Long,
    Float,
    Double,
    Bytes,
    Text,
    Fixed(usize),
    Enum(HashMap<String, i64>),
    Decimal {
        precision: usize,
        scale: usize,
        /// None: as many bytes as it takes.
        size: Option<usize>,
    },
    Uuid(UuidForm),
    Date,
    Time(Unit),
    /// A point of time.
    Timestamp(Unit),
    /// What calendar and clock show, wherever.
    LocalTimestamp(Unit),
    List(Box<Node>),
    Map(Box<Node>),
    Union(Vec<Node>),
    /// The record of this number.
    Record(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UuidForm {
    Text,
    Bytes,
    Fixed,
}

impl Node {
    /// The kinds of JSON that may become a value of it, where a union has others beside it.
    const fn kinds(&self) -> &'static [Kind] {
        match self {
            Self::Null => &[Kind::Null],
            Self::Boolean => &[Kind::Boolean],
            Self::Int | Self::Long | Self::Float | Self::Double => &[Kind::Number],
            Self::Bytes | Self::Text | Self::Fixed(_) | Self::Enum(_) | Self::Uuid(_) => &[Kind::Text],
            Self::Decimal { .. } | Self::Date | Self::Time(_) | Self::Timestamp(_) | Self::LocalTimestamp(_) => {
                &[Kind::Text, Kind::Number]
            }
            Self::List(_) => &[Kind::List],
            Self::Map(_) | Self::Record(_) => &[Kind::Object],
            // Avro has no unions of unions.
            Self::Union(_) => &[],
        }
    }
}

#[derive(Debug)]
struct Record {
    /// With its namespace.
    name: String,
    fields: Vec<Field>,
    /// Their numbers by their names.
    by_name: HashMap<String, usize>,
}

#[derive(Debug)]
struct Field {
    name: String,
    node: Node,
    /// As JSON.
    default: Option<String>,
    /// The same, written.
    written: Option<Vec<u8>>,
}

/// A schema, ready to write by.
#[derive(Debug)]
pub(super) struct Avro {
    root: Node,
    records: Vec<Record>,
    /// Members that the schema does not have are left out.
    ignores_unknown: bool,
}

impl Avro {
    /// Of a schema, and of those that it refers to.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn new(text: &str, references: &[&str], ignores_unknown: bool) -> Result<Self, String> {
        let mut avro = compile::compile(text, references)?;
        avro.ignores_unknown = ignores_unknown;
        Ok(avro)
    }

    /// The full name of the record that it is of.
    pub(super) fn name(&self) -> Option<&str> {
        self.root_record().map(|record| record.name.as_str())
    }

    pub(super) fn fields(&self) -> Option<Vec<SchemaField>> {
        let of = |field: &Field| {
            let is_required = field.default.is_none();
            SchemaField { name: field.name.clone(), json_name: None, is_required }
        };
        Some(self.root_record()?.fields.iter().map(of).collect())
    }

    fn root_record(&self) -> Option<&Record> {
        match self.root {
            Node::Record(number) => self.records.get(number),
            _ => None,
        }
    }

    /// Appends a payload; `most` is how many bytes a record may take.
    pub(super) fn encode(&self, payload: &[u8], most: usize, out: &mut Vec<u8>) -> Result<(), Misfit> {
        let json = Json::of(payload).ok_or_else(|| Misfit::new("the payload is no JSON"))?;
        self.writer(most).value(&self.root, json, 0, out)
    }

    const fn writer(&self, most: usize) -> write::Writer<'_> {
        write::Writer { avro: self, is_default: false, most }
    }
}

#[cfg(test)]
mod tests;
