//! The rows that came late, asked for in the snapshot that a fetch reads with.

use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Statement};

use super::{FetchError, Request};
use crate::database::Loan;
use crate::late::{LateRow, MOST};
use crate::position::Position;

/// The questions of [`crate::source::sweep`], prepared. The second is asked where the first found something.
pub(super) struct Sweep {
    is_any: Statement,
    rows: Statement,
}

impl Sweep {
    /// None where nothing can be late: before every row, or since no snapshot that these rows can be compared with.
    pub(super) async fn prepare(reader: &Loan, request: &Request<'_>) -> Result<Option<Self>, FetchError> {
        let known = request.sweep.is_some_and(|(_, swept)| request.shape.sweep == Some(swept.column));
        if !known || request.after.is_none() {
            return Ok(None);
        }
        let [is_any, rows] = &request.texts.late;
        let (is_any, rows) = (reader.prepare_cached(is_any).await?, reader.prepare_cached(rows).await?);
        Ok(Some(Self { is_any, rows }))
    }

    /// Whether there is one.
    pub(super) async fn finds(&self, reader: &Loan, request: &Request<'_>) -> Result<bool, FetchError> {
        let row = ask(reader, request, &self.is_any).await?.pop();
        Ok(row.map(|row| row.try_get(0)).transpose()?.unwrap_or(false))
    }

    /// All of them, or so many that there are more.
    pub(super) async fn rows(&self, reader: &Loan, request: &Request<'_>) -> Result<(Vec<LateRow>, bool), FetchError> {
        let rows = ask(reader, request, &self.rows).await?;
        let late = |row: &Row| {
            let position = Position { created_at: row.try_get(0)?, id: Some(row.try_get(1)?) };
            Ok(LateRow { position, transaction: row.try_get(2)? })
        };
        let late = rows.iter().take(MOST).map(late).collect::<Result<Vec<_>, tokio_postgres::Error>>()?;
        Ok((late, rows.len() > MOST))
    }
}

async fn ask(reader: &Loan, request: &Request<'_>, statement: &Statement) -> Result<Vec<Row>, tokio_postgres::Error> {
    let Some(((cursor, swept), after)) = request.sweep.zip(request.after) else { return Ok(Vec::new()) };
    let parameters: [&(dyn ToSql + Sync); 4] = [&cursor, &swept.snapshot, &after.created_at, &after.id];
    reader.query(statement, &parameters).await
}
