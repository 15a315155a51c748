//! Labels of enums that due rows are named by: what was renamed is told before a row is claimed, and before an outcome is recorded.
//!
//! A claim reads texts, compares them with marks and writes them, and looks afterwards, in its own transaction, whether each
//! value is still called as the cursor remembers: a label that was renamed before the claim ended is seen then, and nothing of
//! the claim stays. So does what records outcomes.

use std::time::{Duration, Instant};

use crate::cursor::{self, LockedCursor};
use crate::database::{Error, Session, quote_literal};
use crate::jobs::Settlement;
use crate::relay::Config;
use crate::relay::engine::deadline::within;
use crate::relay::engine::not_ready::Unready;
use crate::relay::engine::{Engine, Single};
use crate::relay::setup::prepare;
use crate::source::enums;
use crate::source::pending::{Due, Names, Renamed};

/// Another replica that claims has the cursor for about so long.
const BUSY: Duration = Duration::from_millis(50);

/// Whether rows may be claimed by the labels that were read: not while marks or claims have labels that values had before. The
/// cursor remembers them then. Of marks under a cursor whose row was deleted by hand nothing is known.
pub(super) async fn remembered(
    engine: &Engine,
    session: &Session,
    config: &Config,
    due: &Due,
) -> Result<Result<(), Unready>, Error> {
    let names = &due.naming.names;
    if names.is_empty() {
        return Ok(Ok(()));
    }
    let standings = cursor::standings(session, &[&config.name]).await?;
    let Some(standing) = standings.first() else { return Ok(Ok(())) };
    if standing.order.as_deref().and_then(Names::parse).as_ref() == Some(names) {
        return Ok(Ok(()));
    }
    let identity = prepare::identity(session, config).await?;
    let until = Instant::now() + engine.call_deadline;
    while Instant::now() < until {
        if let Some(judged) = judge(engine, config, due, &identity).await? {
            return Ok(judged);
        }
        tokio::time::sleep(BUSY).await;
    }
    Err(Error::Timeout(engine.call_deadline))
}

/// The same, under the cursor's lock: no row is claimed meanwhile. None while another has it.
async fn judge(
    engine: &Engine,
    config: &Config,
    due: &Due,
    identity: &str,
) -> Result<Option<Result<(), Unready>>, Error> {
    let Single { connection, right: _right } = engine.single().await?;
    let locking = LockedCursor::lock(connection, &config.name, identity, None);
    let Some(cursor) = within(engine, locking).await? else { return Ok(None) };
    // Whose cursor it is, is told by what follows.
    if cursor.foreign {
        within(engine, cursor.release()).await?;
        return Ok(Some(Ok(())));
    }
    let known = cursor.rests_on.order.as_deref().and_then(Names::parse).unwrap_or_default();
    let renamed = due.naming.names.renamed(&known);
    if is_in_use(engine, due, &cursor, &renamed).await? {
        within(engine, cursor.release()).await?;
        return Ok(Some(Err(refusal(config, due, &renamed))));
    }
    for renamed in &renamed {
        let Renamed { column, from, to } = renamed;
        tracing::info!(cursor = config.name, column, from, to, "label renamed");
    }
    within(engine, cursor.remember_names(&due.naming.names.text())).await?;
    within(engine, cursor.claimed(&engine.replica, true)).await?;
    Ok(Some(Ok(())))
}

async fn is_in_use(engine: &Engine, due: &Due, cursor: &LockedCursor, renamed: &[Renamed]) -> Result<bool, Error> {
    if renamed.is_empty() {
        return Ok(false);
    }
    let number = |column: &String| due.config.key.iter().position(|key| key == column);
    let former = renamed.iter().filter_map(|renamed| {
        let number = i32::try_from(number(&renamed.column)? + 1).ok()?;
        Some((number, renamed.from.as_str()))
    });
    let (numbers, labels): (Vec<i32>, Vec<&str>) = former.unzip();
    let lane = due.config.lanes.as_ref().and_then(|lanes| lanes.column.as_ref());
    let lanes = renamed.iter().any(|renamed| lane == Some(&renamed.column));
    within(engine, cursor.names_in_use(&numbers, &labels, lanes)).await
}

fn refusal(config: &Config, due: &Due, renamed: &[Renamed]) -> Unready {
    let all: Vec<String> = renamed.iter().map(ToString::to_string).collect();
    let message = format!(
        "rows of {} are named by labels, and {}; claims or marks of relay {} have the former labels: they would be taken for \
         those of other rows, or of none",
        due.config.table,
        all.join(", "),
        config.name
    );
    let back: Vec<String> = renamed
        .iter()
        .map(|renamed| format!("RENAME VALUE {} TO {}", quote_literal(&renamed.to), quote_literal(&renamed.from)))
        .collect();
    let hint = format!(
        "Rename back: ALTER TYPE … {}. How to rename a label for good: docs/TABLES.md, \"Labels that name rows\".",
        back.join(", ")
    );
    Unready::wrong("labels_renamed", message, hint)
}

/// Whether all that the claim in this transaction has read was read by the labels that the cursor remembers.
pub(super) async fn hold_for_claim(due: &Due, cursor: &LockedCursor) -> Result<bool, Error> {
    if due.naming.names.is_empty() {
        return Ok(true);
    }
    Ok(due.naming.is_all_of(&enums::read(cursor.transaction(), &due.naming.enums).await?))
}

/// Whether rows that were claimed by these labels are still named by them, in this transaction.
pub(super) async fn hold_for_record(due: &Due, settlement: &Settlement) -> Result<bool, Error> {
    if due.naming.names.is_empty() {
        return Ok(true);
    }
    Ok(due.naming.holds(&enums::read(settlement.transaction(), &due.naming.enums).await?))
}

/// The same, in a transaction of its own.
pub(super) async fn hold(engine: &Engine, due: &Due) -> Result<bool, Error> {
    if due.naming.names.is_empty() {
        return Ok(true);
    }
    let Single { connection, right: _right } = engine.single().await?;
    let asking = async {
        let settlement = Settlement::begin(connection, false).await?;
        let hold = hold_for_record(due, &settlement).await?;
        settlement.abandon().await?;
        Ok(hold)
    };
    within(engine, asking).await
}
