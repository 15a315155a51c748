//! The cursors of a relay, and what is kept under its name.

use std::fmt;

use super::subject::place;
use super::unknown;
use crate::cli::table::visible;
use crate::cursor::control::{self, Listed};
use crate::cursor::relay::{Belonging, belongings};
use crate::database::Session;
use crate::position::Position;
use crate::relay::replicas::workers;

/// A relay by its name, as the database knows it.
#[derive(Debug)]
pub(super) struct Named {
    relay: String,
    pub(super) cursors: Vec<Found>,
    pub(super) belongings: Vec<Belonging>,
}

/// A cursor, printed with its position.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) name: String,
    position: Option<Position>,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", visible(&self.name), place(self.position.as_ref()))
    }
}

impl From<Listed> for Found {
    fn from(listed: Listed) -> Self {
        let id = listed.position_id;
        Self { name: listed.name, position: listed.position_created_at.map(|created_at| Position { created_at, id }) }
    }
}

impl Named {
    /// Everything under this name; of a relay with shards, all of its cursors.
    pub(super) async fn find(session: &Session, name: &str) -> anyhow::Result<Self> {
        let all = control::list(session).await?;
        if let Some(shard) = all.iter().find(|cursor| cursor.name == name && cursor.relay != name) {
            anyhow::bail!("{name} is one of the cursors of relay {0}: name {0}, for all of them", shard.relay);
        }
        let cursors: Vec<Found> = all.into_iter().filter(|cursor| cursor.relay == name).map(Found::from).collect();
        if cursors.is_empty() {
            return Err(unknown(name));
        }
        Ok(Self { relay: name.to_owned(), cursors, belongings: belongings(session, name).await? })
    }

    /// A name that has nothing.
    pub(super) fn unused(name: &str) -> Self {
        Self { relay: name.to_owned(), cursors: Vec::new(), belongings: Vec::new() }
    }

    /// Fails while a replica runs that has the relay, and would create its cursor again.
    pub(super) async fn refuse_running(&self, session: &Session) -> anyhow::Result<()> {
        let mut names: Vec<&str> = self.cursors.iter().map(|cursor| cursor.name.as_str()).collect();
        names.push(&self.relay);
        let workers = workers(session, &names).await?;
        if let Some(worker) = workers.iter().find(|worker| worker.reported).or(workers.first()) {
            let why = if worker.reported {
                format!("has relay {}", self.relay)
            } else {
                format!("does not report its relays, and may have {}", self.relay)
            };
            anyhow::bail!(
                "replica {} is running and {why}: stop it, or remove the relay from its configuration and restart it",
                visible(&worker.replica)
            );
        }
        Ok(())
    }

    /// Fails while something is not finished, and says how to finish it.
    pub(super) fn refuse_open(&self) -> anyhow::Result<()> {
        let open: Vec<&Belonging> = self.belongings.iter().filter(|belonging| belonging.open > 0).collect();
        if open.is_empty() {
            return Ok(());
        }
        let relay = &self.relay;
        let lines: Vec<String> = open
            .iter()
            .map(|belonging| {
                format!("\n  {} -> {}", count(belonging.open, &belonging.what), finish(&belonging.what, relay))
            })
            .collect();
        anyhow::bail!("relay {relay} has what is not finished:{}", lines.concat())
    }
}

/// A number of rows of a kind.
pub(super) fn count(rows: i64, what: &str) -> String {
    let one = match what {
        "rows in flight" => "row in flight",
        "marks of rows sent" => "mark of a row sent",
        _ => what.strip_suffix('s').unwrap_or(what),
    };
    format!("{rows} {}", if rows == 1 { one } else { what })
}

/// How rows of a kind are finished.
fn finish(what: &str, relay: &str) -> String {
    match what {
        "rows in flight" => format!("outbox-relay run --once --relay {relay}, which lists them as unknown outcomes"),
        "unknown outcomes" => format!("outbox-relay request list --unknown --relay {relay}, and settle each"),
        "dead letters" => format!("outbox-relay dead-letter redrive --cursor {relay}, or discard"),
        "requests" => format!(
            "outbox-relay run --once --relay {relay}; or hand them over: UPDATE outbox.request SET relay = 'NEW' \
             WHERE relay = '{relay}' AND status <> 'completed'"
        ),
        "schedules" => {
            format!("delete them, or hand them over: UPDATE outbox.schedule SET relay = 'NEW' WHERE relay = '{relay}'")
        }
        "actions" => {
            format!(
                "outbox-relay run --once --relay {relay}; or give them up: SELECT outbox.cancel_actions('SCHEDULE', 'TENANT')"
            )
        }
        _ => "finish them".to_owned(),
    }
}
