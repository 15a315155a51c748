//! Requests of the ledger that an operator gives up.
//!
//! Promise: only what provably is not with the receiver, and with no replica, is given up: a failed request, or a pending one of whose
//! tries none can have arrived. It becomes failed with the code `discarded`, keeps its dedupe key, and is noted in `outbox.operation`. A
//! pending one that may have arrived becomes unknown: left as it is, it would be sent again, or, where its relay does not run, could be
//! neither settled nor given up.

use tokio_postgres::Client;
use tokio_postgres::types::ToSql;

use crate::database::Error;

const FOUND: &str = include_str!("sql/discard_found.sql");

/// Decides by itself what may have been sent: a try may have ended since the requests were read. That keeps its body: the receiver may
/// know its key, and a caller may ask for it again.
const DISCARD: &str = include_str!("sql/discard.sql");

/// So many are given up in one transaction: a statement about hundreds of thousands would be cut, and hold their locks until then.
const TOGETHER: usize = 5000;

/// Which requests.
#[derive(Clone, Copy, Debug)]
pub enum Which<'a> {
    /// These.
    Ids(&'a [String]),
    /// Those of a relay that are not finished; perhaps only those of this status.
    Relay(&'a str, Option<&'a str>),
}

/// A request that an operator wants to give up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenRequest {
    /// Its id.
    pub id: String,
    /// Whom it is for.
    pub user_id: String,
    /// What it is.
    pub template: String,
    /// Its status; `unknown` also when its replica is gone, `discarded` when it was given up before.
    pub status: String,
    /// The code of its last error.
    pub code: Option<String>,
    /// The replica that had it last.
    pub by: Option<String>,
    /// How many tries had an outcome that is not known.
    pub ambiguous: i32,
}

impl OpenRequest {
    /// Whether it becomes unknown, because it may have arrived, where others are given up. A failed one has been settled as lost.
    #[must_use]
    pub fn becomes_unknown(&self) -> bool {
        self.status == "pending" && self.ambiguous > 0
    }
}

/// How many requests an operator's decision has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discarded {
    /// Those that are given up.
    pub given_up: i64,
    /// Those that are unknown now.
    pub unknown: i64,
}

/// Reads them, by due time.
///
/// # Errors
/// The database's.
pub async fn find(client: &Client, which: Which<'_>) -> Result<Vec<OpenRequest>, Error> {
    let (ids, relay, status) = match which {
        Which::Ids(ids) => (ids, None, None),
        Which::Relay(relay, status) => (&[][..], Some(relay), status),
    };
    let parameters: [&(dyn ToSql + Sync); 3] = [&ids, &relay, &status];
    let rows = client.query(FOUND, &parameters).await?;
    let found = rows.iter().map(|row| {
        Ok(OpenRequest {
            id: row.try_get(0)?,
            user_id: row.try_get(1)?,
            template: row.try_get(2)?,
            status: row.try_get(3)?,
            code: row.try_get(4)?,
            by: row.try_get(5)?,
            ambiguous: row.try_get(6)?,
        })
    });
    Ok(found.collect::<Result<_, tokio_postgres::Error>>()?)
}

/// Gives up those that are still pending or failed, so many in a transaction.
///
/// # Errors
/// The database's; what was given up before it stays so.
pub async fn discard(client: &Client, ids: &[String], operator: &str) -> Result<Discarded, Error> {
    let mut all = Discarded { given_up: 0, unknown: 0 };
    for ids in ids.chunks(TOGETHER) {
        let parameters: [&(dyn ToSql + Sync); 3] = [&ids, &operator, &"discarded_unknown"];
        let row = client.query_one(DISCARD, &parameters).await?;
        all.given_up += row.try_get::<_, i64>(0)?;
        all.unknown += row.try_get::<_, i64>(1)?;
    }
    Ok(all)
}
