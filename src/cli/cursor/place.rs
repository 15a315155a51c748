//! Where to: after a row, at an instant, now, or before every row.

use std::time::Duration;

use anyhow::Context as _;

use super::subject::{Subject, place};
use crate::position::{Position, Timestamp};
use crate::source::horizon::Why;
use crate::source::span::of_id;
use crate::source::watcher::Sighting;

/// Two scans this far apart bound a writer that has only just come.
const BETWEEN_SCANS: Duration = Duration::from_millis(100);

/// A place in the order; exactly one of these.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
#[group(required = true, multiple = false)]
pub struct Place {
    /// After the row with this id: the rows after it come next
    #[arg(long, value_name = "ID")]
    pub after_id: Option<String>,
    /// At this instant (RFC 3339): its rows and all later ones come next
    #[arg(long, value_name = "RFC3339", value_parser = instant)]
    pub at: Option<Timestamp>,
    /// At the present horizon: what is committed and safe to read now is left behind
    #[arg(long)]
    pub now: bool,
    /// Before every row
    #[arg(long)]
    pub beginning: bool,
}

fn instant(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse_rfc3339(text).map_err(|error| format!("{error}; write for example 2026-11-21T08:00:00Z"))
}

impl Place {
    /// As a position of this table.
    pub(super) async fn find(&self, subject: &Subject) -> anyhow::Result<Option<Position>> {
        if let Some(id) = &self.after_id {
            return row(subject, id).await.map(Some);
        }
        if self.now {
            let at = horizon(subject, ", or name the place with --at").await?.horizon.at;
            return Ok(Some(Position { created_at: at, id: None }));
        }
        Ok(self.at.map(|created_at| Position { created_at, id: None }))
    }
}

/// The row of an id.
async fn row(subject: &Subject, id: &str) -> anyhow::Result<Position> {
    let table = &subject.shape.config.table;
    let hint = "name the place with --at instead";
    let found = of_id(&subject.session, &subject.shape, id)
        .await
        .with_context(|| format!("cannot look for the row {id} of {table}; {hint}"))?;
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (Some(row), None) => Ok(row),
        (None, _) => anyhow::bail!("{table} has no row with the id {id} that is visible now"),
        (Some(one), Some(two)) => anyhow::bail!(
            "{table} has several rows with the id {id}, among them {} and {}: {hint}",
            place(Some(&one)),
            place(Some(&two))
        ),
    }
}

/// How far the table is safe to read. A place beyond it could leave rows behind that are not committed yet. `otherwise`: what else than
/// waiting can be done.
pub(super) async fn horizon(subject: &Subject, otherwise: &str) -> anyhow::Result<Sighting> {
    subject.watcher.scan(&subject.shape).await?;
    tokio::time::sleep(BETWEEN_SCANS).await;
    let sighting = subject.watcher.scan(&subject.shape).await?;
    if !sighting.horizon.at.is_finite() {
        let (held, table) = (sighting.horizon.held_by.first(), &subject.shape.config.table);
        let who = held
            .map_or_else(|| format!("a session is writing {table}"), |held| held.sentence(subject.shape.rule, table));
        let (since, fix) = match held.map(|held| held.why).unwrap_or_default() {
            Why::Transaction => {
                (" since before this look", "wait for its end, grant pg_read_all_stats to the relay's role")
            }
            Why::Standby => ("", "wait until it has"),
            Why::NoStandby => {
                ("", "connect the standbys that durability asks for, grant pg_read_all_stats to the relay's role")
            }
        };
        anyhow::bail!("{who}{since}, so it is not known yet which rows are safe to pass: {fix}{otherwise}");
    }
    Ok(sighting)
}
