//! A relay as a team might write it, with one fault at a time, so that the delivery checker can show that it finds it.
//!
//! It delivers into memory. Without a fault it follows the horizon's rule and must be acquitted: otherwise a conviction
//! would prove nothing.

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use outbox_relay::position::Timestamp;
use outbox_testkit::delivery::{Committed, Delivery, Report, check};
use tokio_postgres::Client;

use super::PATIENCE;

/// What is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// Reads everything older than 5 ms, whoever still writes.
    WindowOnly,
    /// Moves its position before the receiver has acknowledged.
    AdvanceFirst,
    /// Compares `created_at` alone.
    NoTieBreak,
    /// Looks at the locks on its own table, not on those it is a partition of.
    NoAncestors,
}

#[derive(Debug)]
pub struct NaiveRelay {
    client: Client,
    table: &'static str,
    fault: Fault,
    /// Rows a turn.
    pub rows: i64,
    /// What survives a crash: microseconds since 1970 and id.
    position: (i64, i64),
    /// Writers and the newest instant at which they were known not to hold the lock.
    holders: HashMap<String, i64>,
    last_scan: i64,
    last_horizon: i64,
    delivered: Vec<Delivery>,
}

const MICROS: &str = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

impl NaiveRelay {
    pub fn new(client: Client, table: &'static str, fault: Fault) -> Self {
        let (holders, delivered) = (HashMap::new(), Vec::new());
        Self { client, table, fault, rows: 1000, position: (0, 0), holders, last_scan: 0, last_horizon: 0, delivered }
    }

    /// One turn; how many rows it delivered.
    pub async fn turn(&mut self) -> usize {
        self.turn_that_crashes_after(usize::MAX).await
    }

    /// A turn that ends with the process when the receiver has acknowledged so many rows; the next turn is that of a
    /// new process, which knows nothing but the position.
    pub async fn turn_that_crashes_after(&mut self, acknowledged: usize) -> usize {
        let horizon = self.horizon().await;
        self.last_horizon = horizon;
        let newer = match self.fault {
            Fault::NoTieBreak => "created_at > 'epoch'::timestamptz + $1 * interval '1 us' AND $2 IS NOT NULL",
            Fault::None | Fault::WindowOnly | Fault::AdvanceFirst | Fault::NoAncestors => {
                "(created_at, id) > ('epoch'::timestamptz + $1 * interval '1 us', $2)"
            }
        };
        let statement = format!(
            "SELECT id, (extract(epoch FROM created_at) * 1000000)::bigint FROM {}
             WHERE {newer} AND created_at < 'epoch'::timestamptz + $3 * interval '1 us'
             ORDER BY created_at, id LIMIT $4",
            self.table
        );
        let statement = statement.replace("$1", "$1::bigint").replace("$2", "$2::bigint").replace("$3", "$3::bigint");
        let (at, id) = self.position;
        let rows = self.client.query(&statement, &[&at, &id, &horizon, &self.rows]).await.unwrap();
        let rows: Vec<(i64, i64)> = rows.iter().map(|row| (row.get(1), row.get(0))).collect();
        if self.fault == Fault::AdvanceFirst {
            self.position = rows.last().copied().unwrap_or(self.position);
        }
        for &(at, id) in rows.iter().take(acknowledged) {
            let created_at = Some(Timestamp::from_unix_micros(at));
            self.delivered.push(Delivery { id: id.to_string(), created_at });
        }
        if rows.len() > acknowledged {
            self.holders.clear();
            self.last_scan = 0;
            return acknowledged;
        }
        self.position = rows.last().copied().unwrap_or(self.position);
        rows.len()
    }

    /// Turns until everything committed before this call is delivered or will never be: for when the writers have ended.
    pub async fn drain(&mut self) {
        let now: i64 = self.client.query_one(&format!("SELECT {MICROS}"), &[]).await.unwrap().get(0);
        let end = Instant::now() + PATIENCE;
        while self.turn().await > 0 || self.last_horizon <= now {
            assert!(Instant::now() < end, "the horizon does not pass the end of the writers");
        }
    }

    /// Turns until so many have been delivered.
    pub async fn turn_until_delivered(&mut self, rows: usize) {
        let end = Instant::now() + PATIENCE;
        while self.delivered.len() < rows {
            assert!(Instant::now() < end, "{} of {rows} rows delivered", self.delivered.len());
            self.turn().await;
        }
    }

    pub fn report(&self, committed: &Committed) -> Report {
        check(committed, &BTreeMap::from([(0, self.delivered.clone())]), &[])
    }

    pub fn delivered(&self) -> Vec<&str> {
        self.delivered.iter().map(|delivery| delivery.id.as_str()).collect()
    }

    async fn horizon(&mut self) -> i64 {
        let now: i64 = self.client.query_one(&format!("SELECT {MICROS}"), &[]).await.unwrap().get(0);
        if self.fault == Fault::WindowOnly {
            self.last_scan = now;
            return now - 5_000;
        }
        let ancestors = match self.fault {
            Fault::NoAncestors => "SELECT $1::text::regclass",
            Fault::None | Fault::WindowOnly | Fault::AdvanceFirst | Fault::NoTieBreak => {
                "SELECT relid FROM pg_partition_ancestors($1::text::regclass)"
            }
        };
        let statement = format!(
            "SELECT DISTINCT virtualtransaction FROM pg_locks
             WHERE granted AND mode = 'RowExclusiveLock' AND relation IN (
                 {ancestors} UNION SELECT relid FROM pg_partition_tree($1::text::regclass) UNION SELECT $1::text::regclass)"
        );
        let found = self.client.query(&statement, &[&self.table]).await.unwrap();
        let mut holders = HashMap::new();
        for row in found {
            let holder: String = row.get(0);
            let since = self.holders.get(&holder).copied().unwrap_or(self.last_scan);
            holders.insert(holder, since);
        }
        self.holders = holders;
        self.last_scan = now;
        self.holders.values().copied().min().unwrap_or(now).min(now) - 1_000
    }
}
