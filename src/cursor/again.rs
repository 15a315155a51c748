//! A cursor whose row was deleted, created again.

use super::rule::Halting;
use super::standing::{Creation, create};
use super::status;
use crate::database::{Error, Fragile, Loan};
use crate::late::Swept;

/// Seeks that were asked of the row that is gone are not carried out; late rows count from where they had been found.
const KEPT: &str = include_str!("sql/again_kept.sql");

/// Creates a deleted cursor's row, halted, unless the row exists by now or its relay has cursors of another set of shards; whether it
/// did. In one transaction, so no replica goes on with the row before an operator has decided.
///
/// # Errors
/// The database's; whether the commit took place is then unknown.
pub async fn create_again(
    loan: Loan,
    creation: Creation<'_>,
    swept: Option<&Swept>,
    halt: &Halting<'_>,
) -> Result<bool, Error> {
    let connection = Fragile::new(loan);
    connection
        .batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL synchronous_commit TO on")
        .await?;
    let name = creation.name;
    let created = create(&connection, creation).await?;
    if created {
        let (snapshot, column) = swept.map(|swept| (&swept.snapshot, swept.column)).unzip();
        connection.execute(KEPT, &[&name, &snapshot, &column]).await?;
        status::report(&connection, name, &halt.report, Some(halt.fingerprint), None).await?;
    }
    connection.batch_execute("COMMIT").await?;
    connection.give_back();
    Ok(created)
}
