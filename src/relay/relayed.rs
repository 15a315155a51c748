//! What a turn has read and published, in order: batches, and how far they were acknowledged.

use std::time::{Duration, Instant};

use super::ahead::Rows;
use crate::batch::Batch;
use crate::position::{Position, Timestamp};
use crate::sink::{Failure, Flow, Publication, Published};
use crate::source::fetch::Fetched;

/// What happened between fetch and advance.
pub(super) struct Relayed {
    pub(super) batches: Vec<Batch>,
    pub(super) published: Published,
    pub(super) fetched: Fetched,
}

impl Relayed {
    pub(super) fn nothing(failure: Failure) -> Self {
        Self {
            batches: Vec::new(),
            published: Published { acknowledged: 0, stopped: Some(failure), suspects: 1 },
            fetched: Fetched::default(),
        }
    }

    /// The batch and the row in it of message number `n`.
    pub(super) fn locate(&self, mut n: usize) -> Option<(&Batch, usize)> {
        for batch in &self.batches {
            if n < batch.len() {
                return Some((batch, n));
            }
            n -= batch.len();
        }
        None
    }

    /// The position of the last of `n` messages.
    pub(super) fn end(&self, n: usize) -> Option<Position> {
        let (batch, row) = self.locate(n.checked_sub(1)?)?;
        Some(batch.position(row))
    }

    pub(super) fn message_id(&self, n: usize) -> Option<String> {
        let (batch, row) = self.locate(n)?;
        Some(batch.message(row).id.to_owned())
    }

    pub(super) fn instants(&self, n: usize) -> Vec<Timestamp> {
        self.batches.iter().flat_map(Batch::instants).take(n).copied().collect()
    }
}

/// Pushes batches as they come, keeps them, and waits for the acknowledgements; how long it waited for the last ones.
pub(super) async fn pump(publication: &mut Publication<'_>, kept: &mut Vec<Batch>, mut rows: Rows) -> Duration {
    while let Some(batch) = rows.next().await {
        // Kept before it is pushed: a push that is cut half-way has published rows of it.
        kept.push(batch);
        let Some(batch) = kept.last() else { break };
        if publication.push(batch).await == Flow::Stop {
            // Nothing more is read, but what was pushed before the stop is on its way and counts when it arrives.
            rows.close();
            break;
        }
        // With all rows read there is nothing to wait for, and the loss of the lock must be seen all the same.
        tokio::task::yield_now().await;
    }
    let pushed = Instant::now();
    publication.settle().await;
    pushed.elapsed()
}
