//! How `created_at` comes about, as the catalog shows it.

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::InspectError;
use crate::database::Session;
use crate::source::Stream;
use crate::source::guard::Guard;

/// How `created_at` comes about in one relation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// The relation, and whether the stamping trigger has the last word in it.
    pub guard: Guard,
    /// The column's default, or what it is generated from.
    pub default: Option<String>,
    /// It is computed from other columns, after all triggers.
    pub generated: bool,
    /// The relation's owner, who may send any value.
    pub owner: String,
    /// Roles other than owner and superusers that may send a value.
    pub writers: Vec<String>,
}

pub(super) async fn stamps(session: &Session, family: &[u32], config: &Stream) -> Result<Vec<Stamp>, InspectError> {
    let parameters: [&(dyn ToSql + Sync); 2] = [&family, &config.created_at];
    let stamps = session.prepare_cached(include_str!("../sql/stamps.sql")).await?;
    let rows = session.query(&stamps, &parameters).await?;
    rows.iter()
        .map(|row| {
            Ok(Stamp {
                guard: guard(row)?,
                default: row.try_get(9)?,
                generated: row.try_get(10)?,
                owner: row.try_get(11)?,
                writers: row.try_get(12)?,
            })
        })
        .collect()
}

/// The guard that the first columns of a row tell of, as `stamps.sql` and `shard_key.sql` begin.
pub(in crate::source) fn guard(row: &Row) -> Result<Guard, tokio_postgres::Error> {
    Ok(Guard {
        relation: row.try_get(0)?,
        name: row.try_get(1)?,
        parent: row.try_get(2)?,
        last: row.try_get(3)?,
        fits: row.try_get(4)?,
        always: row.try_get(5)?,
        taken: row.try_get(6)?,
        update_trigger: row.try_get(7)?,
        disabled: row.try_get(8)?,
    })
}
