//! Single rows, each committed by itself, until they are to end or their server is killed.

use std::time::Duration;

use anyhow::Context as _;
use outbox_testkit::postgres::connect;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::pair::Pair;

const WRITERS: usize = 4;
/// Between two rows of a writer.
const EVERY: Duration = Duration::from_millis(5);
const INSERT: &str = "INSERT INTO public.bookings (customer) VALUES ($1)";

/// Writers at work; dropped, they stop at once.
#[derive(Debug)]
pub struct Load {
    end: CancellationToken,
    tasks: JoinSet<u64>,
}

impl Load {
    /// Begins.
    pub async fn start(pair: &Pair) -> anyhow::Result<Self> {
        let (end, mut tasks) = (CancellationToken::new(), JoinSet::new());
        for writer in 0..WRITERS {
            let (client, end) = (connect(&pair.url("app")).await?, end.clone());
            tasks.spawn(async move {
                let mut written = 0;
                let customer = |row: u64| format!("c{writer}-{}", row % 10);
                while !end.is_cancelled() && client.execute(INSERT, &[&customer(written)]).await.is_ok() {
                    written += 1;
                    tokio::time::sleep(EVERY).await;
                }
                written
            });
        }
        Ok(Self { end, tasks })
    }

    /// Ends it; how many rows were committed, as the writers know.
    pub async fn stop(mut self) -> anyhow::Result<u64> {
        self.end.cancel();
        let mut written = 0;
        while let Some(rows) = self.tasks.join_next().await {
            written += rows.context("a writer has panicked")?;
        }
        Ok(written)
    }
}
