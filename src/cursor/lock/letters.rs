//! What the holder of a cursor's lock does with its dead letters and the rows of parked keys.

use super::super::dead_letter::{self, Redrive, Redriven};
use super::super::parked::{self, ParkedKeys, ParkedSample, Unparked};
use super::LockedCursor;
use crate::database::Error;

impl LockedCursor {
    /// At most `most` dead letters that an operator wants to be sent again, oldest first, locked like the cursor.
    ///
    /// # Errors
    /// The database's.
    pub async fn redriving(&self, most: i64) -> Result<Vec<Redrive>, Error> {
        dead_letter::redriving(&self.connection, &self.name, most).await
    }

    /// Records what became of dead letters and commits, which frees the lock; the position stays.
    ///
    /// # Errors
    /// The database's; whether the commit took place is then unknown.
    pub async fn redriven(self, outcome: &Redriven<'_>) -> Result<(), Error> {
        dead_letter::redriven(&self.connection, &self.name, outcome).await?;
        self.connection.give_back();
        Ok(())
    }

    /// The keys that are parked.
    ///
    /// # Errors
    /// The database's.
    pub async fn parked_keys(&self) -> Result<ParkedKeys, Error> {
        if self.parks { parked::keys(&self.connection, &self.name).await } else { Ok(ParkedKeys::default()) }
    }

    /// What rows of at most `most` of the keys that are parked say of what these were made of, with the values of these fields.
    ///
    /// # Errors
    /// The database's.
    pub async fn parked_samples(&self, fields: &[String], most: i64) -> Result<Vec<ParkedSample>, Error> {
        parked::samples(&self.connection, &self.name, fields, most).await
    }

    /// At most `most` rows of released keys, oldest first.
    ///
    /// # Errors
    /// The database's.
    pub async fn released(&self, most: i64) -> Result<Vec<Redrive>, Error> {
        parked::released(&self.connection, &self.name, most).await
    }

    /// Records what became of rows of released keys and commits, which frees the lock; the position stays.
    ///
    /// # Errors
    /// The database's; whether the commit took place is then unknown.
    pub async fn unparked(self, outcome: &Unparked<'_>) -> Result<(), Error> {
        parked::unparked(&self.connection, &self.name, outcome).await?;
        self.connection.give_back();
        Ok(())
    }
}
