//! The cursors of one relay that has shards: that they are of one number.
//!
//! Promise: two sets of cursors never read one relay's rows. A cursor is made only where no cursor of another set is, and
//! whoever made one looks once more.

use crate::database::{Error, Session};

/// Cursors of the relay $1 that are of another set than the identity $2 says.
const STRANGERS: &str = include_str!("sql/shards_strangers.sql");

/// A cursor of another set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stranger {
    /// Its name.
    pub name: String,
    /// What it belongs to, as JSON.
    pub identity: String,
}

/// Cursors of this relay that are of another set than the one that `identity` says.
///
/// # Errors
/// The database's.
pub async fn strangers(session: &Session, relay: &str, identity: &str) -> Result<Vec<Stranger>, Error> {
    let rows = session.query(STRANGERS, &[&relay, &identity]).await?;
    rows.iter().map(|row| Ok(Stranger { name: row.try_get(0)?, identity: row.try_get(1)? })).collect()
}
