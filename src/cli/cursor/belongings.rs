//! The cursors of a relay, and what is kept under its name.

use std::fmt;

use super::subject::at_place;
use super::{unfinished, unknown};
use crate::cli::table::visible;
use crate::config::Config;
use crate::cursor::control::{self, CursorSummary};
use crate::cursor::relay::{Belonging, belongings};
use crate::database::Session;
use crate::position::Position;
use crate::relay::engine::replicas::fleet;

/// A relay by its name, as the database knows it.
#[derive(Debug)]
pub(super) struct NamedRelay {
    pub(super) relay: String,
    pub(super) cursors: Vec<FoundCursor>,
    pub(super) belongings: Vec<Belonging>,
}

/// A cursor, printed with its position.
#[derive(Debug)]
pub(super) struct FoundCursor {
    pub(super) name: String,
    pub(super) position: Option<Position>,
    pub(super) paused: bool,
}

impl fmt::Display for FoundCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", visible(&self.name), at_place(self.position.as_ref()))
    }
}

impl From<CursorSummary> for FoundCursor {
    fn from(listed: CursorSummary) -> Self {
        let (id, paused) = (listed.position_id, listed.paused);
        let position = listed.position_created_at.map(|created_at| Position { created_at, id });
        Self { name: listed.name, position, paused }
    }
}

impl NamedRelay {
    /// Everything under this name; of a relay with shards, all of its cursors.
    pub(super) async fn find(session: &Session, name: &str) -> anyhow::Result<Self> {
        let all = control::list(session).await?;
        if let Some(shard) = all.iter().find(|cursor| cursor.name == name && cursor.relay != name) {
            anyhow::bail!("{name} is one of the cursors of relay {0}: name {0}, for all of them", shard.relay);
        }
        let cursors: Vec<FoundCursor> =
            all.into_iter().filter(|cursor| cursor.relay == name).map(FoundCursor::from).collect();
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
        let workers = fleet(session).await?.workers(&names);
        if let Some(worker) = workers.iter().find(|worker| worker.reported).or(workers.first()) {
            let why = if worker.reported {
                format!("has relay {}", self.relay)
            } else {
                format!("reports no relays that can be read, and may have {}", self.relay)
            };
            anyhow::bail!(
                "replica {} is running and {why}: stop it, or remove the relay from its configuration and restart it",
                visible(&worker.replica)
            );
        }
        Ok(())
    }

    /// Fails while something is not finished, and says how to finish it.
    pub(super) async fn refuse_open(&self, session: &Session, config: &Config) -> anyhow::Result<()> {
        let mut lines = String::new();
        for belonging in self.belongings.iter().filter(|belonging| belonging.open > 0) {
            let hint = unfinished::hint(session, self, belonging, config).await?;
            lines += &format!("\n  {} -> {hint}", self.number(belonging, belonging.open));
        }
        anyhow::ensure!(lines.is_empty(), "relay {} has what is not finished:{lines}", self.relay);
        Ok(())
    }

    /// So many rows of a kind, and of which cursor where the relay has several.
    pub(super) fn number(&self, of: &Belonging, rows: i64) -> String {
        let number = count(rows, &of.what);
        if of.cursor == self.relay { number } else { format!("{number} of {}", visible(&of.cursor)) }
    }
}

/// A number of rows of a kind.
fn count(rows: i64, what: &str) -> String {
    let one = match what {
        "rows in flight" => "row in flight",
        "marks of rows sent" => "mark of a row sent",
        _ => what.strip_suffix('s').unwrap_or(what),
    };
    format!("{rows} {}", if rows == 1 { one } else { what })
}
