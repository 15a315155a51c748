//! The schema's versions: up, down, status, grants. `run` never migrates; it refuses a schema outside its range.
//!
//! Each migration is one transaction under one advisory lock, so that several migrators at once are safe. Migrations only
//! expand, so an older program goes on working beside a newer schema for as long as `oldest_binary` says.

use tokio_postgres::GenericClient;
use tokio_postgres::error::SqlState;

use crate::database;

mod error;
mod grants;
mod notify;
mod owner;
mod printed;
mod rights;
mod schema_version;

pub use error::MigrateError;
pub use grants::{GrantedTable, Lacking, app_grants, grant, lacking, mark_grants, relay_grants};
pub use notify::{make_triggers, notify_triggers};
pub use printed::{down_sql, up_sql};
pub use schema_version::{SchemaVersion, messages_partitioned, require, version};

/// The newest schema version that this program knows, and the one that it was built for.
pub const VERSION: i32 = 20;

/// Serialises migrators; an arbitrary number of our own.
const LOCK: i64 = 0x006f_7574_626f_7872;

struct Migration {
    version: i32,
    up: &'static str,
    down: &'static str,
}

const MIGRATIONS: &[Migration] = &[
    Migration {
        version: 1,
        up: include_str!("../schema/0001_outbox.up.sql"),
        down: include_str!("../schema/0001_outbox.down.sql"),
    },
    Migration {
        version: 2,
        up: include_str!("../schema/0002_failures.up.sql"),
        down: include_str!("../schema/0002_failures.down.sql"),
    },
    Migration {
        version: 3,
        up: include_str!("../schema/0003_due_work.up.sql"),
        down: include_str!("../schema/0003_due_work.down.sql"),
    },
    Migration {
        version: 4,
        up: include_str!("../schema/0004_requests.up.sql"),
        down: include_str!("../schema/0004_requests.down.sql"),
    },
    Migration {
        version: 5,
        up: include_str!("../schema/0005_retention.up.sql"),
        down: include_str!("../schema/0005_retention.down.sql"),
    },
    Migration {
        version: 6,
        up: include_str!("../schema/0006_schedules.up.sql"),
        down: include_str!("../schema/0006_schedules.down.sql"),
    },
    Migration {
        version: 7,
        up: include_str!("../schema/0007_notify.up.sql"),
        down: include_str!("../schema/0007_notify.down.sql"),
    },
    Migration {
        version: 8,
        up: include_str!("../schema/0008_always.up.sql"),
        down: include_str!("../schema/0008_always.down.sql"),
    },
    Migration {
        version: 9,
        up: include_str!("../schema/0009_rule.up.sql"),
        down: include_str!("../schema/0009_rule.down.sql"),
    },
    Migration {
        version: 10,
        up: include_str!("../schema/0010_replicas.up.sql"),
        down: include_str!("../schema/0010_replicas.down.sql"),
    },
    Migration {
        version: 11,
        up: include_str!("../schema/0011_discarded_requests.up.sql"),
        down: include_str!("../schema/0011_discarded_requests.down.sql"),
    },
    Migration {
        version: 12,
        up: include_str!("../schema/0012_turn_progress.up.sql"),
        down: include_str!("../schema/0012_turn_progress.down.sql"),
    },
    Migration {
        version: 13,
        up: include_str!("../schema/0013_late_rows.up.sql"),
        down: include_str!("../schema/0013_late_rows.down.sql"),
    },
    Migration {
        version: 14,
        up: include_str!("../schema/0014_parked_keys.up.sql"),
        down: include_str!("../schema/0014_parked_keys.down.sql"),
    },
    Migration {
        version: 15,
        up: include_str!("../schema/0015_message_txid.up.sql"),
        down: include_str!("../schema/0015_message_txid.down.sql"),
    },
    Migration {
        version: 16,
        up: include_str!("../schema/0016_ahead.up.sql"),
        down: include_str!("../schema/0016_ahead.down.sql"),
    },
    Migration {
        version: 17,
        up: include_str!("../schema/0017_lanes_of_claims.up.sql"),
        down: include_str!("../schema/0017_lanes_of_claims.down.sql"),
    },
    Migration {
        version: 18,
        up: include_str!("../schema/0018_position_order.up.sql"),
        down: include_str!("../schema/0018_position_order.down.sql"),
    },
    Migration {
        version: 19,
        up: include_str!("../schema/0019_audit.up.sql"),
        down: include_str!("../schema/0019_audit.down.sql"),
    },
    Migration {
        version: 20,
        up: include_str!("../schema/0020_visible_before.up.sql"),
        down: include_str!("../schema/0020_visible_before.down.sql"),
    },
];

/// Applies what is missing; gives the versions applied.
///
/// # Errors
/// See [`MigrateError`].
pub async fn up(client: &mut tokio_postgres::Client) -> Result<Vec<i32>, MigrateError> {
    match apply_all(client).await {
        Err(error) => Err(owner::explained(client, error).await),
        applied => applied,
    }
}

async fn apply_all(client: &mut tokio_postgres::Client) -> Result<Vec<i32>, MigrateError> {
    let mut applied = Vec::new();
    for migration in MIGRATIONS {
        let failed = |error| failed(migration.version, "up", &error);
        let transaction = alone(client).await?;
        if version(transaction.client()).await?.version >= migration.version {
            continue;
        }
        transaction.batch_execute(migration.up).await.map_err(failed)?;
        transaction.commit().await.map_err(failed)?;
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
    match take_back(client, to).await {
        Err(error) => Err(owner::explained(client, error).await),
        taken => taken,
    }
}

async fn take_back(client: &mut tokio_postgres::Client, to: i32) -> Result<Vec<i32>, MigrateError> {
    let mut taken = Vec::new();
    for migration in MIGRATIONS.iter().rev().filter(|migration| migration.version > to) {
        let failed = |error| failed(migration.version, "down", &error);
        let transaction = alone(client).await?;
        let found = version(transaction.client()).await?.version;
        if found > VERSION {
            return Err(MigrateError::Unknown { found });
        }
        if found < migration.version {
            continue;
        }
        transaction.batch_execute(migration.down).await.map_err(failed)?;
        if migration.version > 1 {
            transaction.execute("DELETE FROM outbox.version WHERE version = $1", &[&migration.version]).await?;
        }
        transaction.commit().await.map_err(failed)?;
        taken.push(migration.version);
    }
    Ok(taken)
}

/// A transaction that no other migrator runs beside. A session's limits are made for turns: a migrator waits for others,
/// and a large table takes its time; only a lock that the application holds is given up soon.
async fn alone(client: &mut tokio_postgres::Client) -> Result<tokio_postgres::Transaction<'_>, MigrateError> {
    let transaction = client.transaction().await?;
    wait_for_others(&transaction).await?;
    Ok(transaction)
}

/// Makes the open transaction one that no other migrator runs beside.
async fn wait_for_others(transaction: &impl GenericClient) -> Result<(), tokio_postgres::Error> {
    // PostgreSQL knows transaction_timeout from version 17 on.
    let timeouts = include_str!("migrate/sql/unhurried.sql");
    transaction.query(timeouts, &[]).await?;
    transaction.batch_execute("SET LOCAL lock_timeout = '5min'").await?;
    transaction.execute("SELECT pg_catalog.pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    transaction.batch_execute("SET LOCAL lock_timeout = '5s'").await
}

fn failed(version: i32, direction: &'static str, error: &tokio_postgres::Error) -> MigrateError {
    let mut reason = database::error::describe(error);
    if let Some(db) = error.as_db_error() {
        if *db.code() == SqlState::DEPENDENT_OBJECTS_STILL_EXIST {
            // The server's hint is CASCADE, which would take what is not ours.
            let detail = db.detail().unwrap_or_default().replace('\n', "; ");
            reason = format!("{}: drop these first: {detail}", db.message());
        }
        if *db.code() == SqlState::INSUFFICIENT_PRIVILEGE {
            let reason = format!("migration {version} {direction} failed, nothing of it remains: {reason}");
            return MigrateError::Denied { reason, fix: String::new() };
        }
    }
    MigrateError::Failed { version, direction, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbered_without_a_gap_up_to_the_programs_own() {
        let versions: Vec<i32> = MIGRATIONS.iter().map(|migration| migration.version).collect();
        assert_eq!(versions, (1..=VERSION).collect::<Vec<_>>());
    }
}
