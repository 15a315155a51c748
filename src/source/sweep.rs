//! The sweep: the rows of a table with a column `txid` that became visible at or below a position since a snapshot.
//!
//! Promise: those rows, all of them and no others, as long as every row's `txid` is the transaction that wrote it. Such a row's
//! transaction was in progress in the snapshot, or began later. So the sweep asks for these transactions alone, by the index
//! over `(txid, created_at, id)`: what was visible already costs nothing, and an entry above the position costs no look at
//! its row. Both are asked for in the index's order and with a limit, so that the planner takes this index whatever its
//! statistics say. A row is none that came late when the cursor has a letter of it that says so, or an open one.
//!
//! A row that `pg_restore` has copied keeps the number that another server gave its transaction. Here it was inserted by an
//! earlier transaction than that, which no row is whose `txid` this server gave: its `xmin` is that transaction, a
//! subtransaction of it, or one that has updated the row since. So such a row is not taken for late when the counter passes its
//! number. `xmin` has 32 bits: the latest transaction that it can mean is taken, so that no late row is left out.

use std::collections::HashSet;

use super::Stream;
use super::shape::Shape;
use super::table::Table;
use crate::database::{Error, Session, quote_ident};
use crate::late::{AGED, MOST, Swept};

pub mod to_come;

/// The column that tells a row's transaction.
pub const COLUMN: &str = "txid";

/// The first transaction that has not begun.
const NEXT: &str = "pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot())";

/// What the sweep is asked with, as SQL.
struct Asked<'a> {
    cursor: &'a str,
    snapshot: &'a str,
    created_at: &'a str,
    id: &'a str,
    /// Of which transactions on nothing is asked.
    bound: &'a str,
}

impl<'a> Asked<'a> {
    /// What stands in the row `c` of a cursor.
    const fn of_cursor(bound: &'a str) -> Self {
        let (created_at, id) = ("c.position_created_at", "c.position_id");
        Self { cursor: "c.name", snapshot: "c.snapshot::text", created_at, id, bound }
    }
}

/// Whether late rows have been found up to the snapshot in the row `c` of a cursor.
fn is_swept(column: i16) -> String {
    format!(
        "c.swept_column = {column} AND c.swept_at IS NOT DISTINCT FROM c.advanced_at \
         AND c.position_created_at IS NOT NULL AND c.snapshot IS NOT NULL"
    )
}

/// The parameters of a turn's questions.
const TURN: Asked<'static> =
    Asked { cursor: "$1::text", snapshot: "$2::text", created_at: "$3", id: "$4", bound: "$5::text::xid8" };

/// The number of the column by which a table's late rows are found; none where they are not.
#[must_use]
pub fn column(table: &Table, config: &Stream) -> Option<i16> {
    let known = table.column(COLUMN).filter(|column| column.tells_transaction())?;
    table.not_swept_by(config).next().is_none().then_some(known.number)
}

impl Shape {
    /// That late rows have been found up to a snapshot; none where they are not.
    #[must_use]
    pub fn swept(&self, snapshot: String) -> Option<Swept> {
        self.sweep.map(|column| Swept { snapshot, column })
    }

    /// Whether a row came late: for the cursor `$1`, since the snapshot `$2`, at or below the position `$3`, `$4`, of a
    /// transaction before `$5`.
    #[must_use]
    pub fn is_any_late_sql(&self) -> String {
        format!("SELECT {}", self.is_any_late(&TURN))
    }

    /// The late rows, in order, at most one more than are taken at a time: instant, id, transaction. Parameters as above.
    #[must_use]
    pub fn late_sql(&self) -> String {
        let most = MOST + 1;
        let [created_at, id] = self.order();
        let row = format!("{} AS at, {id}::text AS name, {created_at} AS instant, {id} AS id", self.instant());
        let [before, since] = self.late_parts(&TURN, &format!("{row}, t.{COLUMN}::text AS {COLUMN}"), most);
        format!(
            "SELECT l.at, l.name, l.{COLUMN} FROM (({before}) UNION ALL ({since})) AS l ORDER BY l.instant, l.id LIMIT {most}"
        )
    }

    /// Which of the cursors `$1` have a late row, by what stands in their rows; or more rows since than are asked for here,
    /// among which a turn is to look.
    #[must_use]
    pub fn cursors_with_late_rows_sql(&self) -> Option<String> {
        // PostgreSQL does not add to an xid8.
        let bound = format!("(pg_catalog.pg_snapshot_xmax(c.snapshot)::text::bigint + {AGED})::text::xid8");
        let beyond = format!(
            "SELECT FROM {} AS t WHERE t.{COLUMN} >= {bound} \
             AND t.{COLUMN} < {NEXT} ORDER BY t.{COLUMN} LIMIT 1",
            self.config.table.quoted()
        );
        self.cursors_sql(&bound, &format!(" OR EXISTS ({beyond})"))
    }

    /// Which of the cursors `$1` have a late row now, however many were written since.
    fn cursors_with_late_rows_now_sql(&self) -> Option<String> {
        self.cursors_sql(NEXT, "")
    }

    /// Which of the cursors `$1` have a late row of a transaction before `bound`, by what stands in their rows, `or` something else.
    fn cursors_sql(&self, bound: &str, or: &str) -> Option<String> {
        let (swept, is_late) = (is_swept(self.sweep?), self.is_any_late(&Asked::of_cursor(bound)));
        Some(format!(
            "SELECT c.name FROM outbox.cursor AS c WHERE c.name = ANY ((SELECT $1::text[])::text[]) AND {swept} AND ({is_late}{or})"
        ))
    }

    fn is_any_late(&self, asked: &Asked<'_>) -> String {
        let [before, since] = self.late_parts(asked, "", 1);
        format!("EXISTS ({before}) OR EXISTS ({since})")
    }

    /// The rows of transactions that were in progress in the snapshot, and those of later ones.
    fn late_parts(&self, asked: &Asked<'_>, list: &str, most: usize) -> [String; 2] {
        let Asked { snapshot, bound, .. } = asked;
        let (snapshot, now) = (format!("{snapshot}::pg_snapshot"), "pg_catalog.pg_current_snapshot()");
        let ([instant, row_id], unseen_is_late) = (self.order(), self.unseen_is_late(asked));
        let part = |transactions: &str| {
            format!(
                "SELECT {list} FROM {} AS t WHERE {transactions} AND {unseen_is_late} \
                 ORDER BY t.{COLUMN}, {instant}, {row_id} LIMIT {most}",
                self.config.table.quoted()
            )
        };
        // An equation would leave the planner free to walk another index that has the order of the rest.
        let ended = part(&format!("t.{COLUMN} >= x.xid AND t.{COLUMN} <= x.xid"));
        let later = part(&format!(
            "t.{COLUMN} >= pg_catalog.pg_snapshot_xmax({snapshot}) AND t.{COLUMN} < LEAST({NEXT}, {bound})"
        ));
        let before = format!(
            "SELECT l.* FROM pg_catalog.pg_snapshot_xip({snapshot}) AS x (xid) CROSS JOIN LATERAL ({ended}) AS l \
             WHERE pg_catalog.pg_visible_in_snapshot(x.xid, {now})"
        );
        [before, later]
    }

    /// Whether a row of a transaction that the snapshot does not see came late.
    fn unseen_is_late(&self, Asked { cursor, created_at, id, .. }: &Asked<'_>) -> String {
        let ([instant, row_id], position) = (self.order(), self.instant_of(created_at));
        let position_id = format!("{id}::text::{}", self.id_type.sql());
        // With an id that is NULL, only what lies before the instant.
        let below = format!("{instant} <= {position} AND ({instant}, {row_id}) <= ({position}, {position_id})");
        let own = self.shard_terms().map_or_else(String::new, |[of, number]| format!(" AND {of} = {number}"));
        let own = own + &self.and_matches();
        let known = format!(
            "NOT EXISTS (SELECT FROM outbox.dead_letter AS d WHERE d.cursor = {cursor} AND d.created_at = {} \
             AND d.message_id = {row_id}::text AND (d.state IN ('dead', 'redriving') OR d.error ->> 'late' = t.{COLUMN}::text))",
            self.instant()
        );
        let inserted = format!("{NEXT}::text::bigint - (({NEXT}::text::bigint - t.xmin::text::bigint) & 4294967295)");
        format!("{below}{own} AND {inserted} >= t.{COLUMN}::text::bigint AND {known}")
    }
}

/// Which of these cursors have a late row, or so many rows to look among that a turn is to do it.
///
/// # Errors
/// The database's.
pub async fn with_late_rows(session: &Session, shape: &Shape, names: &[&str]) -> Result<HashSet<String>, Error> {
    let Some(sql) = shape.cursors_with_late_rows_sql().filter(|_| !names.is_empty()) else { return Ok(HashSet::new()) };
    let statement = session.prepare_cached(&sql).await?;
    let rows = session.query(&statement, &[&names]).await?;
    Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
}

/// Whether a cursor has a late row now.
///
/// # Errors
/// The database's.
pub async fn has_late_rows(session: &Session, shape: &Shape, name: &str) -> Result<bool, Error> {
    let Some(sql) = shape.cursors_with_late_rows_now_sql() else { return Ok(false) };
    let statement = session.prepare_cached(&sql).await?;
    Ok(session.query_opt(&statement, &[&[name].as_slice()]).await?.is_some())
}

/// The index that the sweep reads by, as a list of columns.
pub(super) fn index_columns(config: &Stream) -> String {
    format!("({COLUMN}, {}, {})", quote_ident(&config.created_at), quote_ident(&config.id))
}
