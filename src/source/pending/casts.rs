//! Casts of the columns of due work that are called when rows are claimed: see [`cast`].

use super::due::Due;
use crate::database::{Error, Session};
use crate::message::Field;
use crate::source::cast;
use crate::source::finding::Finding;

impl Due {
    /// What is wrong with reading these fields of a row.
    #[must_use]
    pub fn casts_called(&self, fields: &[Field]) -> Vec<Finding> {
        cast::of_fields(&self.config.table, &self.casts, fields)
    }

    /// Whether a cast may be created of a column's type, as it was when the table was read: not of built-in types.
    #[must_use]
    pub const fn may_get_casts(&self) -> bool {
        self.may_get_casts
    }

    /// Whether the types of the table's columns have the casts that they had when it was read.
    ///
    /// # Errors
    /// The database's.
    pub async fn has_same_casts(&self, session: &Session) -> Result<bool, Error> {
        Ok(cast::read(session, self.oid).await? == self.casts)
    }
}
