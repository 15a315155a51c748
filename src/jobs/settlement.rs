//! The transaction that records what became of claimed jobs, of whichever kind.

use deadpool_postgres::ClientWrapper;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::cursor::Taking;
use crate::cursor::advance::durability;
use crate::database::{Error, Fragile, Loan};

/// One transaction that records what became of claims.
#[derive(Debug)]
pub struct Settlement {
    pub(super) connection: Fragile,
}

impl Settlement {
    /// Begins.
    ///
    /// # Errors
    /// The database's.
    pub async fn begin(loan: Loan, durable: bool) -> Result<Self, Error> {
        let connection = Fragile::new(loan);
        tokio::try_join!(
            biased;
            connection.batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"),
            connection.batch_execute(durability(durable)),
        )?;
        Ok(Self { connection })
    }

    /// Runs a statement of the source.
    ///
    /// # Errors
    /// The database's.
    pub async fn query(&self, taking: Taking<'_>) -> Result<Vec<Row>, Error> {
        let statement = self.connection.prepare_cached(taking.sql).await?;
        Ok(self.connection.query(&statement, taking.parameters).await?)
    }

    /// The transaction, for what changes this database in it.
    #[must_use]
    pub fn transaction(&self) -> &ClientWrapper {
        &self.connection
    }

    /// Commits.
    ///
    /// # Errors
    /// The database's; whether it took place is then unknown.
    pub async fn commit(self) -> Result<(), Error> {
        self.connection.batch_execute("COMMIT").await?;
        self.connection.give_back();
        Ok(())
    }

    /// Undoes all of it.
    ///
    /// # Errors
    /// The database's; all is undone then, too.
    pub async fn abandon(self) -> Result<(), Error> {
        self.connection.batch_execute("ROLLBACK").await?;
        self.connection.give_back();
        Ok(())
    }

    pub(super) async fn execute(&self, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<(), Error> {
        self.changed(sql, parameters).await.map(drop)
    }

    /// Whether the statement has changed a row.
    pub(super) async fn changed(&self, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<bool, Error> {
        let statement = self.connection.prepare_cached(sql).await?;
        Ok(self.connection.execute(&statement, parameters).await? > 0)
    }
}
