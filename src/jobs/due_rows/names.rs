//! The labels by which due rows are named, as a cursor remembers them: in the column that says of a stream by what its positions
//! are compared, which says nothing of due work.

use crate::cursor::LockedCursor;
use crate::database::Error;

const REMEMBER: &str = "UPDATE outbox.cursor SET position_order = $2 WHERE name = $1";
const IN_USE: &str = include_str!("../sql/due_rows_in_use.sql");

impl LockedCursor {
    /// Remembers them, once this transaction commits.
    ///
    /// # Errors
    /// The database's.
    pub async fn remember_names(&self, names: &str) -> Result<(), Error> {
        let statement = self.transaction().prepare_cached(REMEMBER).await?;
        self.transaction().execute(&statement, &[&self.name(), &names]).await?;
        Ok(())
    }

    /// Whether marks or claims have one of these labels, each in the key's column of the number beside it, counted from 1; or,
    /// with `lanes`, whether a row of a lane is on its way. While the lock is held no row is claimed.
    ///
    /// # Errors
    /// The database's.
    pub async fn names_in_use(&self, numbers: &[i32], labels: &[&str], lanes: bool) -> Result<bool, Error> {
        let statement = self.transaction().prepare_cached(IN_USE).await?;
        let row = self.transaction().query_one(&statement, &[&self.name(), &numbers, &labels, &lanes]).await?;
        Ok(row.try_get(0)?)
    }
}
