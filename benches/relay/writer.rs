//! An application that commits single rows at a steady rate.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::stage::{LIVE, Stage};

/// Connections that share the rate.
const CONNECTIONS: u32 = 4;

/// Writes until it is stopped.
#[derive(Debug)]
pub struct Writer {
    stop: CancellationToken,
    tasks: Vec<JoinHandle<anyhow::Result<u64>>>,
}

impl Writer {
    /// Commits `per_second` rows of 200 bytes a second, each in a transaction of its own.
    pub async fn start(stage: &Stage, per_second: u32) -> anyhow::Result<Self> {
        let stop = CancellationToken::new();
        let period = Duration::from_secs(1) * CONNECTIONS / per_second;
        let mut tasks = Vec::new();
        for number in 0..CONNECTIONS {
            let client = stage.owner().await?;
            let sql = format!("INSERT INTO {LIVE} (customer, payload) VALUES ($1, repeat('x', 200))");
            let insert = client.prepare(&sql).await?;
            let stop = stop.clone();
            let first = Instant::now() + period * number / CONNECTIONS;
            tasks.push(tokio::spawn(async move {
                let mut ticks = tokio::time::interval_at(first, period);
                ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
                let mut written = 0;
                let customer = format!("c{number}");
                while !stop.is_cancelled() {
                    ticks.tick().await;
                    client.execute(&insert, &[&customer]).await?;
                    written += 1;
                }
                Ok(written)
            }));
        }
        Ok(Self { stop, tasks })
    }

    /// Ends it; how many rows it has committed.
    pub async fn stop(self) -> anyhow::Result<u64> {
        self.stop.cancel();
        let mut written = 0;
        for task in self.tasks {
            written += task.await??;
        }
        Ok(written)
    }
}
