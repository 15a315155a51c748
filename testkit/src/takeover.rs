//! Kills the holder of a cursor and measures until another replica delivers.

use std::time::Duration;

use anyhow::Context as _;
use tokio_postgres::Client;

use super::consumer::Received;
use super::replicas::Replicas;
use super::startup;
use crate::delivery::Committed;
use outbox_relay::position::Timestamp;

/// Whether it has advanced since an instant, by whom, and where to.
const STANDING: &str = "
    SELECT coalesce(advanced_at > 'epoch'::timestamptz + $2::bigint * interval '1 us', false),
           coalesce(advanced_by, ''), position_id
    FROM outbox.cursor WHERE name = $1";
const HOLDER: &str = "SELECT coalesce(holder, '') FROM outbox.status WHERE name = $1";

/// How often the cursor is looked at while nobody has taken over yet.
const POLL: Duration = Duration::from_millis(2);

/// Longer than any lock may outlive its holder.
pub(super) const PATIENCE: Duration = Duration::from_secs(15);

/// A replica killed while it held a cursor.
#[derive(Clone, Debug)]
pub(super) struct Kill {
    pub(super) pid: u32,
    pub(super) replica: String,
    pub(super) cursor: String,
    pub(super) at: Timestamp,
    pub(super) taken_over: Option<Takeover>,
}

/// Who advanced the cursor next, and which rows it delivered then.
#[derive(Clone, Debug)]
pub(super) struct Takeover {
    pub(super) by: String,
    above: Option<String>,
    up_to: Option<String>,
}

/// Who holds the cursor, or advanced it last.
async fn holder(owner: &Client, cursor: &str) -> anyhow::Result<String> {
    let holder = owner.query_opt(HOLDER, &[&cursor]).await?.map(|row| replica_of(row.get(0)));
    holder.filter(|name| !name.is_empty()).with_context(|| format!("Nobody has held the cursor {cursor} yet"))
}

/// Kills the holder; it is gone when this returns.
pub(super) async fn kill_holder(owner: &Client, replicas: &mut Replicas, cursor: &str) -> anyhow::Result<Kill> {
    let replica = startup::until(PATIENCE, || true, || holder(owner, cursor)).await?;
    let at = super::now();
    let pid = replicas.kill9(&replica).await?;
    Ok(Kill { pid, replica, cursor: cursor.to_owned(), at, taken_over: None })
}

/// Waits until another replica has advanced the cursor of a killed holder.
pub(super) async fn takeover(owner: &Client, kill: &Kill) -> anyhow::Result<Option<Takeover>> {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    let mut above = None;
    while tokio::time::Instant::now() < deadline {
        let row = owner.query_one(STANDING, &[&kill.cursor, &kill.at.unix_micros()]).await?;
        let (advanced, by, position): (bool, String, Option<String>) = (row.get(0), row.get(1), row.get(2));
        // The last commit of the killed one may still be on its way in the server.
        if advanced && replica_of(&by) != kill.replica {
            return Ok(Some(Takeover { by: replica_of(&by), above, up_to: position }));
        }
        above = position;
        tokio::time::sleep(POLL).await;
    }
    Ok(None)
}

impl Kill {
    /// SIGKILL to the first delivery by the replica that took over. The killed one may have delivered the same rows
    /// before; so for each row of the new holder's first turns it is its last delivery that counts, and of those the
    /// earliest.
    pub(super) fn time(&self, committed: &Committed, received: &Received) -> Option<Duration> {
        let Takeover { above, up_to, .. } = self.taken_over.as_ref()?;
        let rows = committed.between(above.as_deref(), up_to.as_deref()?)?;
        let records = received.partitions.values().flatten();
        let mut last = std::collections::HashMap::new();
        for record in records.filter(|record| rows.contains(record.id.as_str())) {
            let at = last.entry(record.id.as_str()).or_insert(record.received_at);
            *at = (*at).max(record.received_at);
        }
        last.values().min().map(|first| first.since(self.at))
    }
}

/// Sessions are named `outbox-relay/<replica>`; the cursor's own column has the replica alone.
fn replica_of(name: &str) -> String {
    name.rsplit('/').next().unwrap_or_default().to_owned()
}
