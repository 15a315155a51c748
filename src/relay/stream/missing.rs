//! Which rows of a slice the table has and no turn has passed.
//!
//! Promise: what is named is missing, but for a chance of 2^-61 and less; what cannot be told is none, and never a guess. Rows are looked
//! for by the difference of the sums, or else as whole transactions.

use std::collections::HashMap;

use crate::audit::{self, Difference, Sums, element};
use crate::database::{Error, Session};
use crate::late::LateRow;
use crate::position::Position;
use crate::source::range::{self, Bounds, PlacedRow, Way};
use crate::source::shape::Shape;

/// More rows than this are not named at a time.
const MOST: usize = 100_000;

/// The rows that were not passed, in order; none when they cannot be told with certainty. `difference` is that of the sums, if it could be
/// told.
///
/// # Errors
/// The database's.
pub async fn rows(
    session: &Session,
    shape: &Shape,
    bounds: &Bounds,
    delivered: &Sums,
    difference: Option<&Difference>,
) -> Result<Option<Vec<LateRow>>, Error> {
    match difference {
        Some(difference) => differing(session, shape, bounds, difference).await,
        None => whole_transactions(session, shape, bounds, delivered).await,
    }
}

async fn differing(
    session: &Session,
    shape: &Shape,
    bounds: &Bounds,
    difference: &Difference,
) -> Result<Option<Vec<LateRow>>, Error> {
    let (mut rows, mut elements) = (Vec::new(), Vec::new());
    let see = |row: PlacedRow<'_>| {
        let element = element(row.id);
        if difference.is_missing(element) {
            rows.push(late_row(&row));
            elements.push(element);
        }
    };
    range::each(session, shape, bounds, WITH_TRANSACTIONS, see).await?;
    Ok(difference.confirms(&elements).then_some(rows))
}

async fn whole_transactions(
    session: &Session,
    shape: &Shape,
    bounds: &Bounds,
    delivered: &Sums,
) -> Result<Option<Vec<LateRow>>, Error> {
    let (mut table, mut transactions) = (Sums::default(), HashMap::<String, Sums>::new());
    let see = |row: PlacedRow<'_>| {
        table.add(element(row.id));
        transactions.entry(row.transaction.to_owned()).or_default().add(element(row.id));
    };
    range::each(session, shape, bounds, WITH_TRANSACTIONS, see).await?;
    let Some(whole) = audit::transactions(delivered, &table, &transactions) else { return Ok(None) };
    let (mut rows, mut sums) = (Vec::new(), Sums::default());
    let see = |row: PlacedRow<'_>| {
        if whole.contains(&row.transaction) && rows.len() <= MOST {
            sums.add(element(row.id));
            rows.push(late_row(&row));
        }
    };
    range::each(session, shape, bounds, WITH_TRANSACTIONS, see).await?;
    if rows.len() > MOST {
        return Ok(None);
    }
    // What was read now is what was told from the reading before.
    sums.merge(delivered);
    Ok((sums == table).then_some(rows))
}

const WITH_TRANSACTIONS: Way = Way { indexed: true, transactions: true };

fn late_row(row: &PlacedRow<'_>) -> LateRow {
    let position = Position { created_at: row.created_at, id: Some(row.id.to_owned()) };
    LateRow { position, transaction: row.transaction.to_owned() }
}
