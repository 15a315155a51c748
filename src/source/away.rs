//! A partition that was detached, or a table that inherits no more, with rows that were not delivered.
//!
//! A reading of the table does not see them any more. They would be left out, and where it is attached again they would be behind the
//! position, so nothing is read before it is back, or gone for good, or an operator has accepted that.

use std::collections::BTreeSet;

use tokio_postgres::{GenericClient, Row};

use super::fetch::{FetchError, Request};
use super::shape::{After, Shape};
use crate::database::Loan;
use crate::position::Position;

const FACTS: &str = include_str!("sql/away.sql");
const IS_IT: &str = "SELECT COALESCE(pg_catalog.to_regclass($1::text)::oid = $2::oid, false)";
const HAS_PAGES: &str = "SELECT COALESCE(pg_catalog.pg_relation_size($1::oid::regclass), 0) > 0";

/// A relation that is no part of the table any more, and still exists.
struct Relation {
    oid: u32,
    name: String,
    /// What was taken from the table, which is this relation, or what it is a partition of.
    taken: String,
    /// What `DETACH … CONCURRENTLY` takes it from, while that is not finished: transactions that have begun before may still write to it
    /// through the table.
    pending_of: Option<String>,
    /// What keeps this role from reading it, and what would let it.
    unreadable: Option<(String, String)>,
    /// The table is partitioned, and does not inherit.
    is_partition: bool,
}

/// Refuses to read while one of these holds rows after the position, or that is not known. In a transaction of its own, with the lock
/// before the snapshot, as the rows themselves are read: while it waits here, it keeps no other session from the table.
///
/// # Errors
/// [`FetchError::Away`], or that of a connection that has ended.
pub(super) async fn refuse(reader: &Loan, request: &Request<'_>) -> Result<(), FetchError> {
    let shape = request.shape;
    let Some(known) = request.known else { return Ok(()) };
    let gone: Vec<u32> = known.difference(&shape.descendants).copied().collect();
    for relation in existing(&****reader, shape, &gone).await? {
        let why = if relation.pending_of.is_some() {
            Some("transactions that have begun before may still write to it".to_owned())
        } else if let Some((reason, hint)) = &relation.unreadable {
            told(reader, shape, relation.oid, (&relation.name, reason, hint)).await?;
            None
        } else {
            waits(reader, shape, &relation, request.after).await?
        };
        if let Some(why) = why {
            return Err(relation.refusal(shape, request.after, &why));
        }
    }
    Ok(())
}

/// Those of them that still exist and hold rows of their own.
async fn existing(
    client: &impl GenericClient,
    shape: &Shape,
    gone: &[u32],
) -> Result<Vec<Relation>, tokio_postgres::Error> {
    if gone.is_empty() {
        return Ok(Vec::new());
    }
    let rows = client.query(FACTS, &[&gone, &shape.root]).await?;
    rows.iter().map(Relation::of).collect()
}

/// Why rows of that relation may be left out: there are some, or PostgreSQL cannot say.
async fn waits(
    reader: &Loan,
    shape: &Shape,
    Relation { name, oid, .. }: &Relation,
    after: Option<&Position>,
) -> Result<Option<String>, FetchError> {
    let begin = format!("BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY; LOCK TABLE ONLY {name} IN ACCESS SHARE MODE");
    let asked = async {
        reader.batch_execute(&begin).await?;
        // The name was its own before the lock.
        let is_it: bool = reader.query_one(IS_IT, &[name, oid]).await?.try_get(0)?;
        let holds = is_it && holds_rows(&****reader, shape, name, after).await?;
        reader.batch_execute("COMMIT").await?;
        Ok::<_, tokio_postgres::Error>((is_it, holds))
    };
    match asked.await {
        Ok((true, true)) => Ok(Some("it holds some".to_owned())),
        Ok((true, false)) => Ok(None),
        Ok((false, _)) => Ok(Some("whether it holds some cannot be told (it has another name now)".to_owned())),
        // Another shape or name, a lock, a limit: an operator who only sees the code would look for it in the table.
        Err(error) if error.as_db_error().is_some() => {
            let said = crate::database::error::describe(&error);
            Ok(Some(format!("whether it holds some cannot be told ({said})")))
        }
        Err(error) => Err(error.into()),
    }
}

async fn holds_rows(
    client: &impl GenericClient,
    shape: &Shape,
    name: &str,
    after: Option<&Position>,
) -> Result<bool, tokio_postgres::Error> {
    let sql = shape.waiting_sql(name, After::of(after));
    let row = match after {
        None => client.query_one(&sql, &[]).await?,
        Some(Position { created_at, id: None }) => client.query_one(&sql, &[created_at]).await?,
        Some(Position { created_at, id: Some(id) }) => client.query_one(&sql, &[created_at, id]).await?,
    };
    row.try_get(0)
}

/// The name of a relation among those that the cursor has known (`known`) and that are none of the table's now (`family`), with a row
/// after the position, or of which that is not known; for people and for `run --once`.
///
/// # Errors
/// The database's.
pub(super) async fn with_rows(
    client: &impl GenericClient,
    shape: &Shape,
    (known, family): (&[u32], &BTreeSet<u32>),
    after: Option<&Position>,
) -> Result<Option<String>, tokio_postgres::Error> {
    let gone: Vec<u32> = known.iter().filter(|oid| !family.contains(oid)).copied().collect();
    for relation in existing(client, shape, &gone).await? {
        let holds = if relation.pending_of.is_some() {
            true
        } else if relation.unreadable.is_some() {
            false
        } else {
            match holds_rows(client, shape, &relation.name, after).await {
                Err(error) if error.as_db_error().is_some() => true,
                holds => holds?,
            }
        };
        if holds {
            return Ok(Some(relation.name));
        }
    }
    Ok(None)
}

/// Says that rows of a relation may have been left out, unless it has none at all.
async fn told(
    reader: &Loan,
    shape: &Shape,
    oid: u32,
    (partition, reason, hint): (&str, &str, &str),
) -> Result<(), FetchError> {
    if reader.query_one(HAS_PAGES, &[&oid]).await?.try_get(0)? {
        let table = shape.config.table.to_string();
        let message = "a partition was detached, and whether rows of it were not delivered is unknown";
        tracing::warn!(table, partition, reason, hint, message);
    }
    Ok(())
}

impl Relation {
    fn of(row: &Row) -> Result<Self, tokio_postgres::Error> {
        let reason: Option<String> = row.try_get(4)?;
        Ok(Self {
            oid: row.try_get(0)?,
            name: row.try_get(1)?,
            taken: row.try_get(2)?,
            pending_of: row.try_get(3)?,
            unreadable: reason.zip(row.try_get(5)?),
            is_partition: row.try_get(6)?,
        })
    }

    fn refusal(&self, shape: &Shape, after: Option<&Position>, why: &str) -> FetchError {
        let taken = &self.taken;
        let fix = match (&self.pending_of, self.is_partition) {
            (Some(table), _) => format!(
                "Let the detachment end (where it was interrupted: ALTER TABLE {table} DETACH PARTITION {taken} FINALIZE), then attach \
                 {taken} again"
            ),
            (None, true) => {
                format!(
                    "Attach {taken} again (ALTER TABLE … ATTACH PARTITION {taken} FOR VALUES …) where it was taken from"
                )
            }
            (None, false) => format!("ALTER TABLE {taken} INHERIT {}", shape.config.table.quoted()),
        };
        FetchError::Away {
            table: shape.config.table.to_string(),
            partition: self.name.clone(),
            position: after.map_or_else(|| "at the beginning".to_owned(), ToString::to_string),
            why: why.to_owned(),
            fix: format!(
                "{fix}: the relay goes on by itself. To give its rows up, drop {taken}, and the relay goes on as well"
            ),
        }
    }
}
