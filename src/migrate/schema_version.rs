//! Which version the schema has, and whether this program can work with it.

use super::{MigrateError, VERSION};

/// What the database has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchemaVersion {
    /// Number of the last migration; 0 when there is none.
    pub version: i32,
    /// The oldest program that it serves, as the version that program was built for.
    pub oldest_binary: i32,
}

/// Reads the schema's version.
///
/// # Errors
/// When this role may not read it, or the database's.
pub async fn version(client: &tokio_postgres::Client) -> Result<SchemaVersion, MigrateError> {
    // By the catalog: to_regclass fails where the schema may not be looked into.
    let found = client.query_opt(include_str!("sql/version_readable.sql"), &[]).await?;
    let none = SchemaVersion { version: 0, oldest_binary: 0 };
    let Some(found) = found else { return Ok(none) };
    if !found.try_get::<_, bool>(1)? {
        return Err(MigrateError::NotGranted { role: found.try_get(0)? });
    }
    let row = client
        .query_opt("SELECT version, oldest_binary FROM outbox.version ORDER BY version DESC LIMIT 1", &[])
        .await?;
    Ok(match row {
        Some(row) => SchemaVersion { version: row.try_get(0)?, oldest_binary: row.try_get(1)? },
        None => none,
    })
}

/// Refuses a schema that this program cannot work with.
///
/// # Errors
/// Missing, too old, or too new.
pub async fn require(client: &tokio_postgres::Client) -> Result<SchemaVersion, MigrateError> {
    let found = version(client).await?;
    match found {
        SchemaVersion { version: 0, .. } => Err(MigrateError::Missing),
        SchemaVersion { version, .. } if version < VERSION => Err(MigrateError::TooOld { found: version }),
        SchemaVersion { version, oldest_binary } if oldest_binary > VERSION => {
            Err(MigrateError::TooNew { found: version, oldest: oldest_binary })
        }
        found => Ok(found),
    }
}

/// Whether the ready-made outbox has a partition for each day.
///
/// # Errors
/// The database's.
pub async fn messages_partitioned(client: &tokio_postgres::Client) -> Result<bool, MigrateError> {
    let sql =
        "SELECT c.relkind = 'p' FROM pg_catalog.pg_class AS c WHERE c.oid = 'outbox.message'::pg_catalog.regclass";
    Ok(client.query_one(sql, &[]).await?.try_get(0)?)
}
