//! Replicas as objects: what each relays, since when, and which of several configurations runs.

use serde_json::Value;
use tokio_postgres::Client;

use crate::support::outside::{json, stdout_relay};
use crate::support::{CLOCK, Database, PATIENCE, Process, bookings, database, eventually, toml};

mod mismatch;
mod one_id;
mod rows;
mod seen;
mod unread;
mod upkeep;

/// A replica of this name with these relays.
fn start(database: &Database, relays: &str, name: &str) -> Process {
    Process::spawn(&toml(database, "relay", None, relays), &["run", "--replica-id", name])
}

/// A replica's row: whether it has stopped, and its relays.
async fn row(owner: &Client, name: &str) -> Option<(bool, Value)> {
    let sql = "SELECT stopped_at IS NOT NULL, relays::text FROM outbox.replica WHERE id = $1 \
               ORDER BY started_at DESC LIMIT 1";
    let row = owner.query_opt(sql, &[&name]).await.unwrap()?;
    Some((row.get(0), json(row.get(1))))
}

/// Waits until a replica's row says this of its only relay: the code of its refusal.
async fn refuses(owner: &Client, name: &str, code: Option<&str>) {
    eventually(PATIENCE * 2, async || {
        row(owner, name)
            .await
            .is_some_and(|(_, relays)| relays[0]["refused"]["code"].as_str() == code && !relays[0].is_null())
    })
    .await;
}
