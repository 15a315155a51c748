//! Why a migration was not made, or a schema is refused, in words that an operator can act on.

use super::{Lacking, VERSION};
use crate::database::Error;

/// Why a migration was not made, or a schema is refused.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// There is no schema.
    #[error("the database has no schema outbox: run `outbox-relay migrate up` with an owner's [postgres] url")]
    Missing,
    /// There is one, but this role may not look at it.
    #[error(
        "role {role} has no rights on schema outbox: run `outbox-relay migrate up --relay-role {role}` with an owner's \
         [postgres] url"
    )]
    NotGranted {
        /// The role.
        role: String,
    },
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
    /// Migrations that this program does not know cannot be taken back by it.
    #[error(
        "schema outbox has version {found}, this program knows {VERSION}: take it back with the program that made it"
    )]
    Unknown {
        /// The schema's version.
        found: i32,
    },
    /// A migration failed; nothing of it remains.
    #[error("migration {version} {direction} failed, nothing of it remains: {reason}")]
    Failed {
        /// Which.
        version: i32,
        /// `up` or `down`.
        direction: &'static str,
        /// Why, and what fixes it.
        reason: String,
    },
    /// This role may not change the schema.
    #[error("{reason}\n  -> {fix}")]
    Denied {
        /// What the server said.
        reason: String,
        /// Who may, and the SQL with which this role may.
        fix: String,
    },
    /// A grant names a table, a schema or a role that is not there.
    #[error(
        "{0}: the schema is migrated, and none was granted\n  -> create it, or correct its name in [relay.source.*] table, \
         --relay-role or --app-role; then run this command again"
    )]
    Absent(String),
    /// Grants have not taken effect.
    #[error("{0}")]
    Ungranted(Box<Lacking>),
    /// The database's.
    #[error(transparent)]
    Database(#[from] Error),
}

impl From<tokio_postgres::Error> for MigrateError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error.into())
    }
}
