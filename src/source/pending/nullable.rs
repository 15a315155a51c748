//! Which columns of due work may be NULL. Rows are found by it: a mark that may be NULL is asked for in another way, and a
//! row whose key is NULL has no name. With an answer of another day such rows would never be sent, and nothing would say so.

use std::collections::BTreeSet;

use super::Pending;
use super::catalogue::{self, Column};
use super::due::Due;
use super::labels;
use super::names::Naming;
use crate::database::{Error, Session};

/// Those of the key and of the mark that may be.
pub(super) fn of(columns: &[Column], config: &Pending) -> BTreeSet<String> {
    let is_used = |name: &String| config.key.contains(name) || config.sent.as_ref() == Some(name);
    let nullable = columns.iter().filter(|column| !column.not_null && is_used(&column.name));
    nullable.map(|column| column.name.clone()).collect()
}

impl Due {
    /// Whether the same columns of the key and of the mark may be NULL, and the labels of `where` and those that rows are named by
    /// are the same, as when the table was read: `ALTER TABLE` and `ALTER TYPE` may have changed it since.
    ///
    /// # Errors
    /// The database's.
    pub async fn has_same_columns(&self, session: &Session) -> Result<bool, Error> {
        let columns = catalogue::columns(session, self.oid, &self.config).await?;
        Ok(of(&columns, &self.config) == self.nullable
            && labels::of(&columns, &self.config) == self.labels
            && Naming::of(&columns, &self.config) == self.naming)
    }
}
