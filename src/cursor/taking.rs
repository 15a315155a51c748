//! Jobs that are claimed under a cursor's lock: the statement that takes them, and the commit that frees the lock.

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::LockedCursor;
use super::advance::durability;
use crate::database::Error;

const CLAIMED: &str = include_str!("sql/taking_claimed.sql");

/// A statement that claims, with its parameters.
#[derive(Clone, Copy)]
pub struct Taking<'a> {
    /// The statement.
    pub sql: &'a str,
    /// Its parameters.
    pub parameters: &'a [&'a (dyn ToSql + Sync)],
}

impl std::fmt::Debug for Taking<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Taking").field("sql", &self.sql).finish_non_exhaustive()
    }
}

impl LockedCursor {
    /// Claims rows; nothing is claimed before [`Self::claimed`].
    ///
    /// # Errors
    /// The database's.
    pub async fn claim(&self, taking: Taking<'_>) -> Result<Vec<Row>, Error> {
        let statement = self.connection.prepare_cached(taking.sql).await?;
        Ok(self.connection.query(&statement, taking.parameters).await?)
    }

    /// Commits, which frees the lock; `durable` when the claim is also the mark.
    ///
    /// # Errors
    /// The database's; whether the commit took place is then unknown, and nothing of it may be sent.
    pub async fn claimed(self, by: &str, durable: bool) -> Result<(), Error> {
        let statement = self.connection.prepare_cached(CLAIMED).await?;
        let parameters: [&(dyn ToSql + Sync); 2] = [&self.name, &by];
        let ((), updated, ()) = tokio::try_join!(
            biased;
            self.connection.batch_execute(durability(durable)),
            self.connection.execute(&statement, &parameters),
            self.connection.batch_execute("COMMIT"),
        )?;
        if updated != 1 {
            return Err(Error::Vanished(self.name));
        }
        self.connection.give_back();
        Ok(())
    }
}
