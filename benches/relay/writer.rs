//! An application that commits single rows at a steady rate.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::stage::{LIVE, Stage};
use super::tail::now;

/// Commits a second that one connection is to make: a commit waits for the disk.
const EACH: u32 = 250;
const CONNECTIONS_MAX: u32 = 20;

/// A row's id, and when its writer knew that it is committed, in seconds since 1970.
pub type Committed = (i64, f64);

/// Writes until it is stopped.
#[derive(Debug)]
pub struct Writer {
    stop: CancellationToken,
    tasks: Vec<JoinHandle<anyhow::Result<Vec<Committed>>>>,
}

impl Writer {
    /// Commits `per_second` rows of 200 bytes a second, each in a transaction of its own.
    pub async fn start(stage: &Stage, per_second: u32) -> anyhow::Result<Self> {
        Self::into_table(stage, LIVE, per_second).await
    }

    /// The same into another table of [`Stage::table`].
    pub async fn into_table(stage: &Stage, table: &str, per_second: u32) -> anyhow::Result<Self> {
        Self::write(stage, table, per_second, None).await
    }

    /// The same as [`Self::start`], of so many customers in turn.
    pub async fn of_customers(stage: &Stage, per_second: u32, customers: u32) -> anyhow::Result<Self> {
        Self::write(stage, LIVE, per_second, Some(customers)).await
    }

    /// Without a number of customers each connection has its own.
    async fn write(stage: &Stage, table: &str, per_second: u32, customers: Option<u32>) -> anyhow::Result<Self> {
        let stop = CancellationToken::new();
        let connections = (per_second / EACH).clamp(1, CONNECTIONS_MAX);
        let period = Duration::from_secs(1) * connections / per_second;
        let mut tasks = Vec::new();
        for number in 0..connections {
            let client = stage.owner().await?;
            let sql = format!("INSERT INTO {table} (customer, payload) VALUES ($1, repeat('x', 200)) RETURNING id");
            let insert = client.prepare(&sql).await?;
            let stop = stop.clone();
            let first = Instant::now() + period * number / connections;
            tasks.push(tokio::spawn(async move {
                let mut ticks = tokio::time::interval_at(first, period);
                ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
                let mut written = Vec::new();
                let mut customer = number;
                while !stop.is_cancelled() {
                    ticks.tick().await;
                    let id = client.query_one(&insert, &[&format!("c{customer}")]).await?.get(0);
                    written.push((id, now()));
                    customer = customers.map_or(customer, |customers| (customer + connections) % customers);
                }
                Ok(written)
            }));
        }
        Ok(Self { stop, tasks })
    }

    /// Ends it; the rows that it has committed.
    pub async fn stop(self) -> anyhow::Result<Vec<Committed>> {
        self.stop.cancel();
        let mut written = Vec::new();
        for task in self.tasks {
            written.extend(task.await??);
        }
        Ok(written)
    }
}
