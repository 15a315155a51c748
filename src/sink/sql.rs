//! A statement of the user's for each row, or for each batch of rows, in the transaction of the cursor that moves them.
//!
//! Promise: what the statement changes and the advance over its rows are one transaction. Whatever fails, both happened or
//! neither did, so a read model in this database changes exactly once for each row. The sink begins and ends no
//! transaction: it is handed the cursor's, and leaves in it what the acknowledged prefix has changed and nothing else.

use std::collections::BTreeMap;

use deadpool_postgres::ClientWrapper;
use tokio_postgres::Statement;
use tokio_postgres::types::{Kind, Type};

use super::{Class, Failure, InvalidSetting};
use crate::message::{ColumnType, Field, Message};

mod errors;
mod inspect;
mod outline;
mod publication;
mod text;

pub use errors::known_errors;
pub use outline::Outline;
pub use publication::SqlPublication;

/// `[relay.sink.sql]` of the configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The statement, with `$1`, `$2` and so on.
    pub statement: String,
    /// The columns of the row that these are.
    pub parameters: Vec<String>,
    /// How often it runs.
    pub each: Each,
}

impl Config {
    /// What must be read of each row.
    #[must_use]
    pub fn fields(&self) -> Vec<Field> {
        self.parameters.iter().cloned().map(Field::Text).collect()
    }
}

/// How often the statement runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Each {
    /// Once a row.
    #[default]
    Row,
    /// Once for all rows of a batch; each parameter is an array.
    Batch,
}

/// Runs the statement of one relay.
#[derive(Debug)]
pub struct SqlSink {
    statement: String,
    fields: Vec<Field>,
    columns: Vec<ColumnType>,
    types: Vec<Type>,
    each: Each,
}

impl SqlSink {
    /// `columns` are the source's.
    ///
    /// # Errors
    /// Parameters that are no column, or that cannot be put into an array.
    pub fn new(config: &Config, columns: &BTreeMap<String, ColumnType>) -> Result<Self, Vec<InvalidSetting>> {
        let typed = config.parameters.iter().map(|name| {
            let invalid = |problem| InvalidSetting { key: "parameters".to_owned(), problem };
            let column = columns.get(name).ok_or_else(|| invalid(format!("the table has no column {name:?}")))?;
            match (config.each, column.array) {
                (Each::Row, _) => Ok((column.clone(), column.oid)),
                (Each::Batch, Some((oid, _))) => Ok((column.clone(), oid)),
                (Each::Batch, None) => Err(invalid(format!(
                    "column {name:?} is of type {}, and PostgreSQL has no arrays of it: write each = \"row\"",
                    column.name
                ))),
            }
        });
        let (typed, invalid): (Vec<_>, Vec<_>) = typed.partition(Result::is_ok);
        if !invalid.is_empty() {
            return Err(invalid.into_iter().filter_map(Result::err).collect());
        }
        let (columns, oids): (Vec<_>, Vec<_>) = typed.into_iter().filter_map(Result::ok).unzip();
        // Of a parameter's type, only the oid goes to the server.
        let typed = |oid| Type::new(String::new(), oid, Kind::Simple, String::new());
        Ok(Self {
            statement: config.statement.clone(),
            fields: config.fields(),
            columns,
            types: oids.into_iter().map(typed).collect(),
            each: config.each,
        })
    }

    /// Whether the statement would be given the same types by these columns.
    #[must_use]
    pub fn fits(&self, columns: &BTreeMap<String, ColumnType>) -> bool {
        self.fields.iter().zip(&self.columns).all(|(field, column)| match field {
            Field::Text(name) => columns.get(name) == Some(column),
            Field::Row | Field::Columns(_) | Field::Debezium(_) | Field::Payload(_) | Field::Matches => false,
        })
    }

    pub(super) fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The parameters as a JSON array of texts.
    pub(super) fn rendered(&self, message: &Message<'_>) -> Vec<u8> {
        let text = |field| message.value(field).map(String::from_utf8_lossy);
        let texts: Vec<_> = (0..self.fields.len()).map(text).collect();
        serde_json::to_vec(&texts).unwrap_or_default()
    }

    fn is_call(&self) -> bool {
        Outline::of(&self.statement).first_word == "CALL"
    }

    fn types_in_sql(&self) -> Vec<String> {
        let array = if self.each == Each::Batch { "[]" } else { "" };
        self.columns.iter().map(|column| format!("{}{array}", column.name)).collect()
    }

    async fn prepare(&self, client: &ClientWrapper) -> Result<Statement, Failure> {
        let prepared = client.prepare_typed_cached(&self.statement, &self.types).await;
        let statement = prepared.map_err(|error| errors::judge(&error))?;
        let (wanted, given) = (statement.params().len(), self.types.len());
        if wanted == given {
            return Ok(statement);
        }
        let message = format!("the statement has {wanted} parameters, and the relay {given} for it");
        Err(Failure::of(Class::Fatal, "sql_parameters", message, "Name a column for each in `parameters`."))
    }
}
