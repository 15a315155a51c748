//! Has the relay publish what its topic lacks: each row becomes a dead letter that is being redriven, which the cursor's next turn
//! reads again and publishes, with the header `replayed`. Where late rows are found by their transaction, the letter is that of a late row:
//! published with the header `late`, and not found late again.

use std::collections::BTreeMap;

use tokio_postgres::Client;
use tokio_postgres::types::ToSql;

use super::Report;
use super::decide::{Kind, Withheld};
use super::report::Difference;
use crate::cursor::control::note;
use crate::database::Error;
use crate::position::Timestamp;

impl Report {
    /// The rows that the topic lacks, without those that a repair leaves out.
    pub fn missing(&self) -> impl Iterator<Item = &Difference> {
        self.lacking().filter(|found| found.withheld.is_none())
    }

    fn lacking(&self) -> impl Iterator<Item = &Difference> {
        self.differences.iter().filter(|found| matches!(found.kind, Kind::NotInTopic | Kind::NotDelivered))
    }

    /// What must be said of those that a repair leaves out.
    pub(super) fn withheld(&self) -> Vec<String> {
        let rows = |why: Withheld| self.lacking().filter(|found| found.withheld == Some(why)).count();
        let counted = Withheld::ALL.into_iter().map(|why| (why, rows(why))).filter(|(_, rows)| *rows > 0);
        let note = |(why, rows): (Withheld, usize)| {
            let why = why.as_str();
            format!(
                "--repair leaves out {rows} rows that the topic lacks: {why}; `cursor seek` to before them has them sent"
            )
        };
        counted.map(note).collect()
    }
}

/// The rows of a cursor that are to be published.
#[derive(Default)]
struct Rows<'a> {
    instants: Vec<Timestamp>,
    ids: Vec<&'a str>,
    transactions: Vec<Option<&'a str>>,
}

/// Orders it, in one transaction; gives how many rows are to be published. Another verify may have ordered the same since the comparison
/// `began`, by the database's clock.
///
/// # Errors
/// The database's.
pub async fn repair(
    client: &mut Client,
    table: &str,
    (report, began): (&Report, Timestamp),
    by: &str,
) -> Result<usize, Error> {
    let mut of_cursors: BTreeMap<&str, Rows<'_>> = BTreeMap::new();
    for missing in report.missing() {
        let (Some(cursor), Some(at)) = (&missing.cursor, missing.created_at) else { continue };
        let rows = of_cursors.entry(cursor).or_default();
        rows.instants.push(at);
        rows.ids.push(&missing.id);
        rows.transactions.push(missing.transaction.as_deref());
    }
    let transaction = client.transaction().await?;
    let mut ordered = 0;
    for (cursor, Rows { instants, ids, transactions }) in &of_cursors {
        let parameters: [&(dyn ToSql + Sync); 8] =
            [cursor, &table, &report.topic, instants, ids, &by, transactions, &began];
        let letters = transaction.query(include_str!("sql/repair.sql"), &parameters).await?;
        ordered += letters.len();
        let detail = serde_json::json!({ "rows": ids, "letters": letters.len() }).to_string();
        note(&transaction, "verify repair", cursor, by, Some(&detail)).await?;
    }
    transaction.commit().await?;
    Ok(ordered)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::Range;

    fn found(id: &str, kind: Kind, withheld: Option<Withheld>) -> Difference {
        let id = id.to_owned();
        Difference { id, created_at: None, kind, record: None, cursor: None, transaction: None, withheld }
    }

    // Guarantee: verify.repair
    #[test]
    fn rows_that_may_have_been_passed_over_are_named_and_left_out() {
        let (missing, adopted) = (Kind::NotInTopic, Some(Withheld::Adopted));
        let range = Range { since: Timestamp::NEG_INFINITY, until: Timestamp::INFINITY };
        let report = Report {
            counts: BTreeMap::from([(missing, 3), (Kind::Twice, 1)]),
            differences: vec![
                found("1", missing, None),
                found("2", missing, adopted),
                found("3", missing, adopted),
                found("4", Kind::Twice, adopted),
            ],
            ..Report::empty("r", range)
        };
        assert!(!report.is_equal());
        assert_eq!(report.missing().map(|found| found.id.as_str()).collect::<Vec<_>>(), ["1"]);
        let notes = report.withheld();
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(
            notes[0].starts_with("--repair leaves out 2 rows that the topic lacks: they are not after"),
            "{notes:?}"
        );
    }
}
