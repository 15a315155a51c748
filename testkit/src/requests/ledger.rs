//! What the ledger says: by its own table, and by the lists that `request list` prints.

use std::collections::HashSet;

use tokio_postgres::Client;

use super::judge::{Entry, Ledger};
use super::{MAILS, TEXTS};
use crate::kills::Kill;
use outbox_relay::jobs::requests::{self, RequestFilter};

const ENTRIES: &str = "SELECT relay, coalesce(dedupe_key, ''), request_id::text, status FROM outbox.request";
const COUNTS: &str = "SELECT relay, status, count(*) FROM outbox.request GROUP BY relay, status";
const KNOWN: &str = "SELECT count(*) FROM outbox.template WHERE name = ANY ($1)";

/// What a replica had: the claims that it leaves behind.
const HELD: &str = "SELECT relay FROM outbox.request WHERE claimed_by = $1 AND status = 'processing'";

/// How many requests of a relay are in each state.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) pending: i64,
    pub(super) processing: i64,
    pub(super) completed: i64,
    pub(super) unknown: i64,
}

/// Whether both templates can be asked for.
pub(super) async fn knows_the_templates(owner: &Client) -> anyhow::Result<bool> {
    let known: i64 = owner.query_one(KNOWN, &[&[MAILS.1, TEXTS.1].as_slice()]).await?.get(0);
    Ok(known == 2)
}

/// Everything at the end.
pub(super) async fn read(owner: &Client) -> anyhow::Result<Ledger> {
    let rows = owner.query(ENTRIES, &[]).await?;
    let entry =
        |row: &tokio_postgres::Row| Entry { relay: row.get(0), about: row.get(1), id: row.get(2), status: row.get(3) };
    let all = RequestFilter { relay: None, state: None, ambiguous: false, limit: i64::MAX };
    let unknown = ids(owner, RequestFilter { state: Some("unknown"), ..all }).await?;
    let ambiguous = ids(owner, RequestFilter { ambiguous: true, ..all }).await?;
    Ok(Ledger { entries: rows.iter().map(entry).collect(), unknown, ambiguous })
}

async fn ids(owner: &Client, filter: RequestFilter<'_>) -> anyhow::Result<HashSet<String>> {
    Ok(requests::list(owner, filter).await?.into_iter().flat_map(|listed| listed.key).collect())
}

/// The present of both relays, mails first.
pub(super) async fn counts(owner: &Client) -> anyhow::Result<[Counts; 2]> {
    let mut both = [Counts::default(); 2];
    for row in owner.query(COUNTS, &[]).await? {
        let counts = &mut both[usize::from(row.get::<_, &str>(0) == TEXTS.0)];
        let state = match row.get(1) {
            "pending" => &mut counts.pending,
            "processing" => &mut counts.processing,
            "completed" => &mut counts.completed,
            "unknown" => &mut counts.unknown,
            _ => continue,
        };
        *state = row.get(2);
    }
    Ok(both)
}

/// Counts what the victim had in hand.
pub(super) async fn count_held(owner: &Client, victim: &str, kill: &mut Kill) -> anyhow::Result<()> {
    for row in owner.query(HELD, &[&victim]).await? {
        kill.count(row.get(0));
    }
    Ok(())
}
