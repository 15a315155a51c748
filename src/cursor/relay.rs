//! What is kept under a relay's name: removing its cursors, and moving everything to another name.
//!
//! Functions of the schema do it, as its owner: the relay's role cannot delete a cursor in another way. Each is one
//! transaction, takes the cursors' locks, and leaves a row in `outbox.operation`.

use tokio_postgres::{Client, Row};

use crate::database::Error;

/// Rows of one kind that are kept under a relay's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Belonging {
    /// Of which kind: the word of `outbox.relay_belongings`, `parked keys` or `parked rows`.
    pub what: String,
    /// Of which cursor of the relay; the relay's name for what is kept of the relay as a whole.
    pub cursor: String,
    /// How many.
    pub rows: i64,
    /// How many of them are not finished: the cursors cannot be removed before they are.
    pub open: i64,
}

/// What is kept under a relay's name beside its cursors; kinds without rows are left out.
///
/// # Errors
/// The database's.
pub async fn belongings(client: &Client, relay: &str) -> Result<Vec<Belonging>, Error> {
    let sql = "SELECT b.what, b.of_cursor, b.rows, b.open FROM outbox.relay_belongings($1) AS b WHERE b.rows > 0";
    let rows = client.query(sql, &[&relay]).await?;
    let parked = client.query(include_str!("sql/relay_parked.sql"), &[&relay]).await?;
    let belonging = |row: &Row| {
        Ok(Belonging { what: row.try_get(0)?, cursor: row.try_get(1)?, rows: row.try_get(2)?, open: row.try_get(3)? })
    };
    rows.iter().chain(&parked).map(belonging).collect()
}

/// Removes the cursors of a relay; how many they were. `given_up` says of each cursor how many rows were not delivered, for the
/// row in `outbox.operation`.
///
/// # Errors
/// The database's, also when something of the relay is not finished.
pub async fn remove(client: &Client, relay: &str, by: &str, given_up: &serde_json::Value) -> Result<i32, Error> {
    let sql = "SELECT outbox.remove_cursors($1, $2, $3::text::jsonb)";
    Ok(client.query_one(sql, &[&relay, &by, &given_up.to_string()]).await?.try_get(0)?)
}

/// Gives a relay's cursors another name, with everything that is kept under the old one; how many they were.
///
/// # Errors
/// The database's, also when a relay of the new name has cursors.
pub async fn rename(client: &Client, old: &str, new: &str, by: &str) -> Result<i32, Error> {
    Ok(client.query_one("SELECT outbox.rename_cursors($1, $2, $3)", &[&old, &new, &by]).await?.try_get(0)?)
}

/// Lets the session take its time, because a relay's history may be long, and wait for the disk: a session's limits are made
/// for turns.
///
/// # Errors
/// The database's.
pub async fn unhurried(client: &Client) -> Result<(), Error> {
    // PostgreSQL knows transaction_timeout from version 17 on.
    let limits = include_str!("sql/relay_unhurried.sql");
    client.query(limits, &[]).await?;
    Ok(())
}
