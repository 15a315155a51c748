//! What operators do with cursors. None of it takes the cursor's lock; each leaves a row in `outbox.operation`.

use tokio_postgres::{Client, GenericClient};

use super::standing::{self, Creation};
use crate::database::Error;
use crate::position::Timestamp;

/// A cursor in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CursorSummary {
    /// Its name.
    pub name: String,
    /// Its relay's.
    pub relay: String,
    /// It has a row; false of a name that was refused before it had a cursor.
    pub exists: bool,
    /// `created_at` of its position.
    pub position_created_at: Option<Timestamp>,
    /// The id of its position.
    pub position_id: Option<String>,
    /// Who holds it, or advanced it last.
    pub holder: Option<String>,
    /// Server process of the holder.
    pub pid: Option<i32>,
    /// When it last advanced.
    pub advanced_at: Option<Timestamp>,
    /// An operator has paused it.
    pub paused: bool,
    /// It is halted.
    pub halted: bool,
    /// By the checks of a replica, which may be passed by another.
    pub by_check: bool,
    /// Its last error, as JSON.
    pub last_error: Option<String>,
    /// The database's clock at the scan of the last advance.
    pub observed_at: Option<Timestamp>,
    /// Since when its sink's circuit has been open.
    pub circuit_opened_at: Option<Timestamp>,
    /// Dead letters that wait for an operator or for their turn.
    pub dead_letters: i64,
    /// Rows that came late, as far back as their letters are kept.
    pub late_rows: i64,
    /// Keys that are parked.
    pub parked_keys: i64,
}

/// What became of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlOutcome {
    /// It is so now.
    Done,
    /// It was so already.
    Already,
    /// There is no such cursor.
    Unknown,
}

/// Lists all cursors of the database by name, those included that a relay could not make yet.
///
/// # Errors
/// The database's.
pub async fn list(client: &Client) -> Result<Vec<CursorSummary>, Error> {
    let rows = client.query(include_str!("sql/control_list.sql"), &[]).await?;
    rows.iter()
        .map(|row| {
            Ok(CursorSummary {
                name: row.try_get(0)?,
                relay: row.try_get(1)?,
                position_created_at: row.try_get(2)?,
                position_id: row.try_get(3)?,
                holder: row.try_get(4)?,
                pid: row.try_get(5)?,
                advanced_at: row.try_get(6)?,
                paused: row.try_get(7)?,
                halted: row.try_get(8)?,
                last_error: row.try_get(9)?,
                observed_at: row.try_get(10)?,
                circuit_opened_at: row.try_get(11)?,
                dead_letters: row.try_get(12)?,
                by_check: row.try_get(13)?,
                exists: row.try_get(14)?,
                late_rows: row.try_get(15)?,
                parked_keys: row.try_get(16)?,
            })
        })
        .collect()
}

async fn exists(client: &Client, name: &str) -> Result<bool, Error> {
    let row = client.query_one("SELECT EXISTS (SELECT FROM outbox.status WHERE name = $1)", &[&name]).await?;
    Ok(row.try_get(0)?)
}

/// Begins no more turns of a cursor.
///
/// # Errors
/// The database's.
pub async fn pause(client: &mut Client, name: &str, by: &str) -> Result<ControlOutcome, Error> {
    if !exists(client, name).await? {
        return Ok(ControlOutcome::Unknown);
    }
    let transaction = client.transaction().await?;
    let changed = transaction.execute(include_str!("sql/control_pause.sql"), &[&name, &by]).await?;
    note(&transaction, "cursor pause", name, by, None).await?;
    transaction.commit().await?;
    Ok(if changed == 0 { ControlOutcome::Already } else { ControlOutcome::Done })
}

/// Ends a pause and a halt.
///
/// # Errors
/// The database's.
pub async fn resume(client: &mut Client, name: &str, by: &str) -> Result<ControlOutcome, Error> {
    if !exists(client, name).await? {
        return Ok(ControlOutcome::Unknown);
    }
    let transaction = client.transaction().await?;
    let unpaused = transaction.execute(include_str!("sql/control_resume.sql"), &[&name]).await?;
    let unhalted = transaction.execute(include_str!("sql/control_unhalt.sql"), &[&name]).await?;
    note(&transaction, "cursor resume", name, by, None).await?;
    transaction.commit().await?;
    Ok(if unpaused + unhalted == 0 { ControlOutcome::Already } else { ControlOutcome::Done })
}

/// Makes a cursor before its relay first runs; says whether it made it.
///
/// # Errors
/// The database's.
pub async fn create(client: &mut Client, creation: Creation<'_>, by: &str, detail: &str) -> Result<bool, Error> {
    let name = creation.name;
    let transaction = client.transaction().await?;
    if !standing::create(transaction.client(), creation).await? {
        return Ok(false);
    }
    note(&transaction, "cursor create", name, by, Some(detail)).await?;
    transaction.commit().await?;
    Ok(true)
}

/// Leaves a row in `outbox.operation`: who did what, with further facts as JSON.
///
/// # Errors
/// The database's.
pub async fn note(
    client: &impl GenericClient,
    verb: &str,
    cursor: &str,
    by: &str,
    detail: Option<&str>,
) -> Result<(), Error> {
    client.execute(include_str!("sql/operation_note.sql"), &[&by, &verb, &cursor, &detail]).await?;
    Ok(())
}
