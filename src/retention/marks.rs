//! Marks in `outbox.sent`: pruned only when the row that they are of is gone.
//!
//! A mark is what keeps a row from being sent again, so it stays for as long as the table or view has a row of its key,
//! due or not, fitting `where` or not: what does not fit today may fit tomorrow. A claim keeps its mark, too.

use tokio_postgres::Row;

use super::{Kept, OldRecords, What};
use crate::cursor::{self, RelayFacts};
use crate::database::{Error, Session};
use crate::relay;
use crate::relay::engine::identity::difference;
use crate::relay::setup::prepare;
use crate::source;
use crate::source::enums;
use crate::source::finding::Level;
use crate::source::pending::{Due, Names, Naming, Pending, inspect, judge};

/// So many marks are looked at by one statement.
const PAGE: i64 = 2_000;

/// The marks of one relay, and how far a pass has come in them.
#[derive(Debug)]
pub(super) struct Marks<'a> {
    relay: &'a str,
    look: String,
    prune: String,
    /// By which labels its rows are named.
    naming: Naming,
    after: Vec<String>,
}

/// What one statement did.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page {
    /// Marks that may go, or have gone.
    pub(super) gone: i64,
    /// Old marks that stay.
    pub(super) kept: i64,
    /// It was the last.
    pub(super) last: bool,
}

/// Whether a relay keeps its marks in `outbox.sent`.
pub(super) fn of(relay: &relay::Config) -> Option<&Pending> {
    match &relay.source {
        source::Config::Pending(pending) if pending.sent.is_none() => Some(pending),
        source::Config::Pending(_)
        | source::Config::Stream(_)
        | source::Config::Requests(_)
        | source::Config::Schedule(_) => None,
    }
}

/// The marks of a relay; the inner error says why they must not be judged.
pub(super) async fn open<'a>(
    session: &Session,
    relay: &'a relay::Config,
    pending: &Pending,
) -> Result<Result<Marks<'a>, String>, Error> {
    let table = inspect(session, pending).await?;
    let findings = judge(table.as_ref(), pending);
    if let Some(error) = findings.into_iter().find(|finding| finding.level == Level::Error) {
        return Ok(Err(error.message));
    }
    let Some(table) = table else { return Ok(Err(format!("{} does not exist", pending.table))) };
    let due = Due::new(&table, pending);
    // By another table's rows, every mark would look like one whose row is gone.
    let identity = prepare::identity(session, relay).await?;
    let facts = RelayFacts { identity: &identity, root: due.oid, relations: &[due.oid].into() };
    if let Some(other) = cursor::foreign_identity(session, &relay.name, facts).await? {
        return Ok(Err(difference(&relay.name, &other, &identity)));
    }
    // Under other labels, too.
    let standings = cursor::standings(session, &[&relay.name]).await?;
    let known = standings.first().and_then(|standing| standing.order.as_deref()).and_then(Names::parse);
    if let Some(renamed) = due.naming.names.renamed(&known.unwrap_or_default()).first() {
        return Ok(Err(renamed.to_string()));
    }
    let (look, prune) = (due.stale_sql(false), due.stale_sql(true));
    Ok(Ok(Marks { relay: &relay.name, look, prune, naming: due.naming, after: Vec::new() }))
}

impl Marks<'_> {
    /// Goes one page on; with `prune`, takes away what may go.
    pub(super) async fn page(&mut self, session: &Session, seconds: f64, prune: bool) -> Result<Page, Error> {
        let row = if prune {
            match self.pruned(session, seconds).await? {
                Some(row) => row,
                // The next pass says which label it is.
                None => return Ok(Page { gone: 0, kept: 0, last: true }),
            }
        } else {
            session.query_one(&self.look, &[&self.relay, &self.after, &seconds, &PAGE]).await?
        };
        let (seen, old, gone): (i64, i64, i64) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        if let Some(after) = row.try_get(3)? {
            self.after = after;
        }
        Ok(Page { gone, kept: old - gone, last: seen < PAGE })
    }
}

impl Marks<'_> {
    /// Prunes a page; none when labels were renamed meanwhile, by which marks would look like those of rows that are gone.
    async fn pruned(&self, session: &Session, seconds: f64) -> Result<Option<Row>, Error> {
        if self.naming.names.is_empty() {
            return Ok(Some(session.query_one(&self.prune, &[&self.relay, &self.after, &seconds, &PAGE]).await?));
        }
        session.batch_execute("BEGIN").await?;
        let pruned = async {
            let row = session.query_one(&self.prune, &[&self.relay, &self.after, &seconds, &PAGE]).await?;
            Ok::<_, Error>(self.naming.holds(&enums::read(session, &self.naming.enums).await?).then_some(row))
        };
        let pruned = pruned.await;
        let end = if matches!(pruned, Ok(Some(_))) { "COMMIT" } else { "ROLLBACK" };
        session.batch_execute(end).await?;
        pruned
    }
}

/// Marks of one relay that may go, and what keeps the others.
pub(super) async fn look(
    session: &Session,
    relay: &relay::Config,
    pending: &Pending,
    seconds: f64,
) -> Result<OldRecords, Error> {
    let mut found = OldRecords { what: What::SentMarks, of: relay.name.clone(), rows: 0, kept: Vec::new() };
    let mut marks = match open(session, relay, pending).await? {
        Ok(marks) => marks,
        Err(held_by) => {
            found.kept.push(Kept::all(held_by));
            return Ok(found);
        }
    };
    let mut kept = 0;
    loop {
        let page = marks.page(session, seconds, false).await?;
        found.rows += page.gone;
        kept += page.kept;
        if page.last {
            break;
        }
    }
    found.kept.extend(Kept::some(kept, &format!("rows of {} with these keys, or claims of them", pending.table)));
    Ok(found)
}

/// Old marks of relays that are not configured here: whether their rows are gone cannot be told.
pub(super) async fn strangers(session: &Session, relays: &[&str], seconds: f64) -> Result<Vec<OldRecords>, Error> {
    let rows = session.query(include_str!("sql/marks_strangers.sql"), &[&relays, &seconds]).await?;
    rows.iter()
        .map(|row| {
            let held_by = "the relay is not configured here, or marks in a column now";
            let kept = Kept::some(row.try_get(1)?, held_by).into_iter().collect();
            Ok(OldRecords { what: What::SentMarks, of: row.try_get(0)?, rows: 0, kept })
        })
        .collect()
}
