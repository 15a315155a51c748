//! The schema's versions: up, down, status, grants. `run` never migrates; it refuses a schema outside its range.
//!
//! Each migration is one transaction under one advisory lock, so that several migrators at once are safe. Migrations only
//! expand, so an older program goes on working beside a newer schema for as long as `oldest_binary` says.

use crate::database::{self, Error, quote_ident, quote_literal};

/// The newest schema version that this program knows, and the one that it was built for.
pub const VERSION: i32 = 1;

/// Serialises migrators; an arbitrary number of our own.
const LOCK: i64 = 0x006f_7574_626f_7872;

struct Migration {
    version: i32,
    up: &'static str,
    down: &'static str,
}

const MIGRATIONS: &[Migration] = &[Migration {
    version: 1,
    up: include_str!("../schema/0001_outbox.up.sql"),
    down: include_str!("../schema/0001_outbox.down.sql"),
}];

/// What the database has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchemaVersion {
    /// Number of the last migration; 0 when there is none.
    pub version: i32,
    /// The oldest program that it serves, as the version that program was built for.
    pub oldest_binary: i32,
}

/// Why a migration was not made, or a schema is refused.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// There is no schema.
    #[error("the database has no schema outbox: run `outbox-relay migrate up` with an owner's [postgres] url")]
    Missing,
    /// The schema is older than the program needs.
    #[error("schema outbox has version {found}, this program needs {VERSION}: run `outbox-relay migrate up`")]
    TooOld {
        /// The schema's version.
        found: i32,
    },
    /// The schema no longer serves the program.
    #[error(
        "schema outbox has version {found} and serves programs built for {oldest} and newer; this one was built for \
         {VERSION}: install a newer outbox-relay"
    )]
    TooNew {
        /// The schema's version.
        found: i32,
        /// The oldest version served.
        oldest: i32,
    },
    /// The target version does not exist.
    #[error("--to {0}: there is no such version; versions go from 0 to {VERSION}")]
    NoSuchVersion(i32),
    /// A migration failed; nothing of it remains.
    #[error("migration {version} {direction} failed, nothing of it remains: {source}")]
    Failed {
        /// Which.
        version: i32,
        /// `up` or `down`.
        direction: &'static str,
        /// Why.
        source: Error,
    },
    /// The database's.
    #[error(transparent)]
    Database(#[from] Error),
}

impl From<tokio_postgres::Error> for MigrateError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error.into())
    }
}

/// Reads the schema's version.
///
/// # Errors
/// The database's.
pub async fn version(client: &tokio_postgres::Client) -> Result<SchemaVersion, MigrateError> {
    let exists: bool =
        client.query_one("SELECT pg_catalog.to_regclass('outbox.version') IS NOT NULL", &[]).await?.try_get(0)?;
    if !exists {
        return Ok(SchemaVersion { version: 0, oldest_binary: 0 });
    }
    let row = client
        .query_opt("SELECT version, oldest_binary FROM outbox.version ORDER BY version DESC LIMIT 1", &[])
        .await?;
    Ok(match row {
        Some(row) => SchemaVersion { version: row.try_get(0)?, oldest_binary: row.try_get(1)? },
        None => SchemaVersion { version: 0, oldest_binary: 0 },
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

/// Applies what is missing; gives the versions applied.
///
/// # Errors
/// See [`MigrateError`].
pub async fn up(client: &mut tokio_postgres::Client) -> Result<Vec<i32>, MigrateError> {
    let mut applied = Vec::new();
    for migration in MIGRATIONS {
        let failed = |source| MigrateError::Failed { version: migration.version, direction: "up", source };
        let transaction = client.transaction().await?;
        transaction.execute("SELECT pg_catalog.pg_advisory_xact_lock($1)", &[&LOCK]).await?;
        if version(transaction.client()).await?.version >= migration.version {
            continue;
        }
        transaction.batch_execute(migration.up).await.map_err(|error| failed(error.into()))?;
        transaction.commit().await.map_err(|error| failed(error.into()))?;
        applied.push(migration.version);
    }
    Ok(applied)
}

/// Takes migrations back down to version `to`; gives the versions taken back.
///
/// # Errors
/// See [`MigrateError`].
pub async fn down(client: &mut tokio_postgres::Client, to: i32) -> Result<Vec<i32>, MigrateError> {
    if !(0..=VERSION).contains(&to) {
        return Err(MigrateError::NoSuchVersion(to));
    }
    let mut taken = Vec::new();
    for migration in MIGRATIONS.iter().rev().filter(|migration| migration.version > to) {
        let failed = |source| MigrateError::Failed { version: migration.version, direction: "down", source };
        let transaction = client.transaction().await?;
        transaction.execute("SELECT pg_catalog.pg_advisory_xact_lock($1)", &[&LOCK]).await?;
        if version(transaction.client()).await?.version < migration.version {
            continue;
        }
        transaction.batch_execute(migration.down).await.map_err(|error| failed(error.into()))?;
        if migration.version > 1 {
            transaction.execute("DELETE FROM outbox.version WHERE version = $1", &[&migration.version]).await?;
        }
        transaction.commit().await.map_err(|error| failed(error.into()))?;
        taken.push(migration.version);
    }
    Ok(taken)
}

/// The SQL that `up` runs on a database of version `from`.
#[must_use]
pub fn up_sql(from: i32) -> String {
    let mut sql = String::new();
    for migration in MIGRATIONS.iter().filter(|migration| migration.version > from) {
        sql.push_str("BEGIN;\n");
        sql.push_str(migration.up);
        sql.push_str("COMMIT;\n");
    }
    sql
}

/// The SQL that `down` runs from version `from` to version `to`.
#[must_use]
pub fn down_sql(from: i32, to: i32) -> String {
    let mut sql = String::new();
    for migration in MIGRATIONS.iter().rev().filter(|m| m.version > to && m.version <= from) {
        sql.push_str("BEGIN;\n");
        sql.push_str(migration.down);
        if migration.version > 1 {
            sql.push_str(&format!("DELETE FROM outbox.version WHERE version = {};\n", migration.version));
        }
        sql.push_str("COMMIT;\n");
    }
    sql
}

/// A table that the relay's role shall read: schema and name.
pub type Table<'a> = (&'a str, &'a str);

/// The grants of the relay's role: exactly what its turns need. No DELETE, no DDL.
#[must_use]
pub fn relay_grants(role: &str, tables: &[Table<'_>]) -> String {
    let role = quote_ident(role);
    let mut sql = include_str!("../schema/grants.sql").replace(":\"relay_role\"", &role);
    let mut schemas: Vec<&str> = tables.iter().map(|(schema, _)| *schema).collect();
    schemas.sort_unstable();
    schemas.dedup();
    for schema in schemas {
        sql.push_str(&format!("GRANT USAGE ON SCHEMA {} TO {role};\n", quote_ident(schema)));
    }
    for (schema, name) in tables {
        sql.push_str(&format!("GRANT SELECT ON {}.{} TO {role};\n", quote_ident(schema), quote_ident(name)));
    }
    sql
}

/// The grants of a role that writes the ready-made outbox.
#[must_use]
pub fn app_grants(role: &str) -> String {
    let role = quote_ident(role);
    format!("GRANT USAGE ON SCHEMA outbox TO {role};\nGRANT INSERT ON outbox.message TO {role};\n")
}

/// Runs grants.
///
/// # Errors
/// The database's, for example that this role does not own the tables.
pub async fn grant(client: &tokio_postgres::Client, sql: &str) -> Result<(), MigrateError> {
    client.batch_execute(&format!("BEGIN; {sql} COMMIT;")).await.map_err(|error| {
        tracing::debug!(error = database::error::describe(&error), sql = quote_literal(sql), "grants failed");
        MigrateError::from(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbered_without_a_gap_up_to_the_programs_own() {
        let versions: Vec<i32> = MIGRATIONS.iter().map(|migration| migration.version).collect();
        assert_eq!(versions, (1..=VERSION).collect::<Vec<_>>());
    }

    #[test]
    fn hostile_role_and_table_names_stay_names() {
        let sql = relay_grants("r\"; DROP TABLE x; --", &[("public", "user"), ("we\"ird", "Select")]);
        assert!(sql.contains("TO \"r\"\"; DROP TABLE x; --\";"));
        assert!(sql.contains("GRANT SELECT ON \"public\".\"user\" TO"));
        assert!(sql.contains("GRANT USAGE ON SCHEMA \"we\"\"ird\" TO"));
    }
}
