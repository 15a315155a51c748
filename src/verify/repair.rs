//! Has the relay publish what its topic lacks: each row becomes a dead letter that is being redriven, which the cursor's next turn
//! reads again and publishes, with the header `replayed`.

use std::collections::BTreeMap;

use tokio_postgres::Client;
use tokio_postgres::types::ToSql;

use super::Report;
use super::decide::Kind;
use super::report::Difference;
use crate::cursor::control::note;
use crate::database::Error;
use crate::position::Timestamp;

impl Report {
    /// The rows that the topic lacks.
    pub fn missing(&self) -> impl Iterator<Item = &Difference> {
        self.differences.iter().filter(|found| matches!(found.kind, Kind::NotInTopic | Kind::NotDelivered))
    }
}

/// Orders it, in one transaction; gives how many rows are to be published. Another verify may have ordered the same before.
///
/// # Errors
/// The database's.
pub async fn repair(client: &mut Client, table: &str, report: &Report, by: &str) -> Result<usize, Error> {
    let mut of_cursors: BTreeMap<&str, (Vec<Timestamp>, Vec<&str>)> = BTreeMap::new();
    for missing in report.missing() {
        let (Some(cursor), Some(at)) = (&missing.cursor, missing.created_at) else { continue };
        let (instants, ids) = of_cursors.entry(cursor).or_default();
        instants.push(at);
        ids.push(&missing.id);
    }
    let transaction = client.transaction().await?;
    let mut ordered = 0;
    for (cursor, (instants, ids)) in &of_cursors {
        let parameters: [&(dyn ToSql + Sync); 6] = [cursor, &table, &report.topic, instants, ids, &by];
        let letters = transaction.query(include_str!("sql/repair.sql"), &parameters).await?;
        ordered += letters.len();
        let detail = serde_json::json!({ "rows": ids, "letters": letters.len() }).to_string();
        note(&transaction, "verify repair", cursor, by, Some(&detail)).await?;
    }
    transaction.commit().await?;
    Ok(ordered)
}
