//! Names that a list is to be filtered by.

use tokio_postgres::Client;

use super::schedule::title;
use crate::config::Config;
use crate::database::Error;
use crate::jobs::timetable::{self, ScheduleFilter};

/// So many known names are printed.
const SHOWN: i64 = 20;

/// A filter that names nothing that is there: a usage error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} {given:?}; known: {known}")]
pub(super) struct Unknown {
    what: &'static str,
    given: String,
    known: String,
}

/// Refuses the name of a cursor or relay that neither the configuration nor the database has.
///
/// # Errors
/// [`Unknown`], or the database's.
pub(super) async fn relay(
    client: &Client,
    config: &Config,
    what: &'static str,
    given: Option<&str>,
) -> anyhow::Result<()> {
    let Some(given) = given else { return Ok(()) };
    let configured = |relay: &crate::relay::Config| relay.name == given || relay.relay == given;
    if config.relays.iter().any(configured) {
        return Ok(());
    }
    let mut names: Vec<String> = config.relays.iter().map(|relay| relay.name.clone()).collect();
    if named(client, given).await? {
        return Ok(());
    }
    names.extend(cursors(client).await?);
    names.sort();
    names.dedup();
    Err(unknown(what, given, &names).into())
}

/// Refuses a schedule that is not there and has left no action; `id` is the number that it is given by.
///
/// # Errors
/// [`Unknown`], or the database's.
pub(super) async fn schedule(client: &Client, given: &str, id: Option<i64>) -> anyhow::Result<()> {
    let name = Some(given).filter(|_| id.is_none());
    if client.query_one(include_str!("sql/known_schedule.sql"), &[&id, &name]).await?.try_get(0)? {
        return Ok(());
    }
    let filter = ScheduleFilter { limit: SHOWN, ..ScheduleFilter::default() };
    let names: Vec<String> = timetable::list(client, filter).await?.iter().map(title).collect();
    Err(unknown("schedule", given, &names).into())
}

fn unknown(what: &'static str, given: &str, names: &[String]) -> Unknown {
    let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    Unknown { what, given: given.to_owned(), known }
}

/// Whether anything in the database has this cursor's or relay's name, also when both are gone.
async fn named(client: &Client, name: &str) -> Result<bool, Error> {
    let sql = include_str!("sql/known_named.sql");
    Ok(client.query_one(sql, &[&name]).await?.try_get(0)?)
}

async fn cursors(client: &Client) -> Result<Vec<String>, Error> {
    let rows = client.query("SELECT name FROM outbox.cursor ORDER BY name LIMIT $1", &[&SHOWN]).await?;
    Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
}
