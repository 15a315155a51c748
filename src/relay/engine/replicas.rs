//! Who relays: the replicas that are connected to this database.

use std::collections::BTreeSet;

use tokio_postgres::Client;

use crate::cursor::replicas::{SESSION, SQL_SESSION};
use crate::database::Error;
use crate::relay::Config;
use crate::source;

mod fleet;

pub use fleet::{Fleet, document, fleet, relay_of};

/// What the sessions of a replica call themselves.
///
/// The watcher leaves sessions of other replicas out where the relay's role cannot write the table. That would lose what
/// the user's SQL writes in them through a `SECURITY DEFINER` function or a trigger, so the name tells.
#[must_use]
pub fn application(replica: &str, relays: &[Config]) -> String {
    let prefix = if run_user_sql(relays) { SQL_SESSION } else { SESSION };
    format!("{prefix}{replica}")
}

/// What the sessions of an intake call themselves: their functions write by the rights of their owner.
#[must_use]
pub fn intake_application(replica: &str) -> String {
    format!("{SQL_SESSION}{replica}")
}

/// The replica's name in the name of one of its sessions; the whole name when it is another's.
#[must_use]
pub fn replica(application: &str) -> &str {
    [SQL_SESSION, SESSION].iter().find_map(|prefix| application.strip_prefix(prefix)).unwrap_or(application)
}

/// Whether the user's SQL runs in the sessions of a replica with these relays.
#[must_use]
pub(in crate::relay) fn run_user_sql(relays: &[Config]) -> bool {
    relays.iter().any(runs_user_sql)
}

/// Marks of pending rows fire triggers of their table, and schedules run queries.
fn runs_user_sql(relay: &Config) -> bool {
    let of_source = match &relay.source {
        source::Config::Pending(_) | source::Config::Schedule(_) => true,
        source::Config::Stream(_) | source::Config::Requests(_) => false,
    };
    of_source || relay.sink.of_kind().runs_user_sql()
}

/// Names of the replicas with a session in this database. Verbs of the command line call themselves otherwise.
///
/// # Errors
/// The database's.
pub async fn running(client: &Client) -> Result<Vec<String>, Error> {
    let rows = client.query(include_str!("sql/replicas_running.sql"), &[]).await?;
    let names = rows.iter().map(|row| Ok(replica(row.try_get(0)?).to_owned()));
    Ok(names.collect::<Result<BTreeSet<_>, Error>>()?.into_iter().collect())
}

/// A replica that runs, and may work on a cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    /// The replica's name.
    pub replica: String,
    /// Whether it has reported this relay as one of its own; if not, its relays are not known: it has reported none, or in a form
    /// that cannot be read.
    pub reported: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replica_is_named_alike_with_and_without_user_sql() {
        assert_eq!(replica(&application("eu-1", &[])), "eu-1");
        assert_eq!(replica(&intake_application("eu-1")), "eu-1");
        assert_eq!(replica("psql"), "psql");
    }
}
