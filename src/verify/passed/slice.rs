//! One slice and the rows that the table has between its places.

use std::collections::HashSet;

use super::{Gone, gone, letters};
use crate::audit::{self, Comparison, Difference, Sums, element};
use crate::database::{Error, Session};
use crate::late::LateRow;
use crate::relay::stream::missing;
use crate::source::range::{self, Bounds, PlacedRow, Way};
use crate::source::shape::{IdType, Shape};
use crate::source::sweep::to_come;
use crate::verify::Range;

const WAY: Way = Way { indexed: true, transactions: false };
/// So often it is read when the table changes meanwhile.
const ATTEMPTS: usize = 3;

/// What was passed, and between which places.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side<'a> {
    pub(super) cursor: &'a str,
    pub(super) bounds: &'a Bounds,
    pub(super) delivered: &'a Sums,
}

/// How a slice and the table differ.
#[derive(Clone, Debug)]
pub(super) enum Verdict {
    /// They do not.
    Equal,
    /// In these rows of the table, and in some that it has not any more.
    Differs { missing: Vec<LateRow>, gone: Gone },
    /// In more ids than can be told. How many rows the table has, and how many were passed.
    Unclear { table: u64, passed: u64 },
}

impl Verdict {
    /// Without rows that the slice has, and the table, too: those of letters, which were left out of the table's sums.
    fn without(self, letters: &[&str]) -> Self {
        match self {
            Self::Differs { missing, mut gone } => {
                for id in letters {
                    gone.take_out(id);
                }
                Self::Differs { missing, gone }
            }
            other @ (Self::Equal | Self::Unclear { .. }) => other,
        }
    }

    /// With rows that no slice has for a reason that is asked for each by itself.
    fn and_missing(self, rows: Vec<LateRow>) -> Self {
        match self {
            Self::Equal if rows.is_empty() => Self::Equal,
            Self::Equal => Self::Differs { missing: rows, gone: Gone::default() },
            Self::Differs { mut missing, gone } => {
                missing.extend(rows);
                Self::Differs { missing, gone }
            }
            unclear @ Self::Unclear { .. } => unclear,
        }
    }
}

/// One reading of the table.
#[derive(Debug, Default)]
struct Reading {
    sums: Sums,
    /// How many of its rows are in the range.
    rows: u64,
    /// The smallest and the largest id, where ids are numbers.
    ids: Option<(i64, i64)>,
    /// Those of its rows that are not in the sums.
    aside: HashSet<String>,
}

impl Reading {
    fn saw(&mut self, id: &str) {
        if let Ok(number) = id.parse::<i64>() {
            let (least, most) = self.ids.unwrap_or((number, number));
            self.ids = Some((least.min(number), most.max(number)));
        }
    }
}

/// Compares them; says how many rows of the range the table has there, too.
pub(super) async fn compare(
    session: &Session,
    shape: &Shape,
    side: Side<'_>,
    wanted: Range,
) -> Result<(u64, Verdict), Error> {
    let none = HashSet::new();
    let mut last = Reading::default();
    for _ in 0..ATTEMPTS {
        last = read(session, shape, side.bounds, wanted, &none).await?;
        match audit::compare(side.delivered, &last.sums) {
            Comparison::Equal => return Ok((last.rows, Verdict::Equal)),
            Comparison::Differs(difference) => {
                if let Some(verdict) = differs(session, shape, side, (difference, last.ids)).await? {
                    return Ok((last.rows, verdict));
                }
            }
            Comparison::TooMany => {
                if let Some(verdict) = too_many(session, shape, side, (wanted, &last.sums)).await? {
                    return Ok((last.rows, verdict));
                }
                break;
            }
        }
    }
    Ok((last.rows, Verdict::Unclear { table: last.sums.rows(), passed: side.delivered.rows() }))
}

async fn read(
    session: &Session,
    shape: &Shape,
    bounds: &Bounds,
    wanted: Range,
    without: &HashSet<String>,
) -> Result<Reading, Error> {
    let mut reading = Reading::default();
    let are_numbers = matches!(shape.id_type, IdType::SmallInt | IdType::Integer | IdType::BigInt);
    if are_numbers {
        [&bounds.after, &bounds.up_to]
            .into_iter()
            .filter_map(|place| place.id.as_deref())
            .for_each(|id| reading.saw(id));
    }
    let see = |row: PlacedRow<'_>| {
        reading.rows += u64::from(wanted.has(row.created_at));
        if without.contains(row.id) {
            reading.aside.insert(row.id.to_owned());
        } else {
            reading.sums.add(element(row.id));
        }
        if are_numbers {
            reading.saw(row.id);
        }
    };
    range::each(session, shape, bounds, WAY, see).await?;
    Ok(reading)
}

/// Names what differs; none when the table has changed since its sums were taken.
async fn differs(
    session: &Session,
    shape: &Shape,
    side: Side<'_>,
    (difference, ids): (Difference, Option<(i64, i64)>),
) -> Result<Option<Verdict>, Error> {
    let missing = if difference.missing() == 0 {
        Some(Vec::new())
    } else {
        missing::rows(session, shape, side.bounds, side.delivered, Some(&difference)).await?
    };
    Ok(missing.map(|missing| {
        let ids = gone::named(&difference, ids);
        let unnamed = difference.gone().saturating_sub(ids.len()) as u64;
        Verdict::Differs { missing, gone: Gone { ids, unnamed, difference: Some(difference) } }
    }))
}

/// The same where the sums cannot tell it: all rows are gone, or whole transactions came late, or rows whose letters are known, or that are
/// still to come late.
async fn too_many(
    session: &Session,
    shape: &Shape,
    side: Side<'_>,
    (wanted, table): (Range, &Sums),
) -> Result<Option<Verdict>, Error> {
    if table.rows() == 0 {
        let gone = Gone { unnamed: side.delivered.rows(), ..Gone::default() };
        return Ok(Some(Verdict::Differs { missing: Vec::new(), gone }));
    }
    if let Some(missing) = missing::rows(session, shape, side.bounds, side.delivered, None).await? {
        return Ok(Some(Verdict::Differs { missing, gone: Gone::default() }));
    }
    // First what is to come late: where that is over already, the row has a letter.
    let to_come = to_come::between(session, shape, side.cursor, side.bounds).await?;
    let letters = late_letters(session, side).await?;
    let waiting: HashSet<String> = to_come.iter().filter_map(|row| row.position.id.clone()).collect();
    let aside: HashSet<String> = letters.iter().chain(&waiting).cloned().collect();
    if aside.is_empty() {
        return Ok(None);
    }
    let Reading { sums, ids, aside: mut there, .. } = read(session, shape, side.bounds, wanted, &aside).await?;
    // No slice has what is to come. Of an id that has two letters the first counts.
    let is_there = |id: &&str| !waiting.contains(*id) && there.remove(*id);
    let letters: Vec<&str> = letters.iter().map(String::as_str).filter(is_there).collect();
    let verdict = match letters::compared(side.delivered, sums, &letters) {
        (Comparison::Equal, _) => Some(Verdict::Equal),
        (Comparison::Differs(difference), taken) => {
            let verdict = differs(session, shape, side, (difference, ids)).await?;
            verdict.map(|verdict| verdict.without(&letters[taken..]))
        }
        (Comparison::TooMany, _) => None,
    };
    Ok(verdict.map(|verdict| verdict.and_missing(to_come)))
}

/// The ids of rows that came late, whatever has become of their letters, in the order in which they were found.
async fn late_letters(session: &Session, Side { cursor, bounds, .. }: Side<'_>) -> Result<Vec<String>, Error> {
    let (since, until) = (bounds.after.created_at, bounds.up_to.created_at);
    let rows = session.query(include_str!("../sql/late_letters.sql"), &[&cursor, &since, &until]).await?;
    Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, tokio_postgres::Error>>()?)
}
