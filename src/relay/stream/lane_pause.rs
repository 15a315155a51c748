//! What follows from a turn that ended at a lane that waits (`[relay.turn] in_flight`).

use std::time::Duration;

use crate::relay::stream::report;
use crate::relay::stream::worker::{Next, Then, Worker};
use crate::sink::Failure;

/// Pauses beside a lane that waits: each turn costs the database a transaction, and rows of others may come.
const SHORTEST_LANE_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_LANE_PAUSE: Duration = Duration::from_secs(1);
/// The end of what is reported of a row that waits with its lane.
pub(in crate::relay) const ONLY_ITS_LANE: &str = "(only rows of its lane wait for it)";

impl Worker<'_> {
    /// A row waits for its next attempt with its lane, and the others go on. Each turn reads again what stands beyond that row: what
    /// comes to other lanes meanwhile waits a little, so that reading takes a part of the time only.
    pub(in crate::relay) async fn lane_waits(
        &mut self,
        (rows, attempt): (usize, Duration),
        failure: &Failure,
        message_id: Option<&str>,
    ) -> (Next, Then) {
        if rows > 0 && (self.backoff.failures() > 0 || self.ready.status.circuit_open()) {
            self.recovered().await;
        }
        if self.ready.waiting.is_news(message_id) || !self.ready.status.reported() {
            let (cursor, code, error) = (&self.ready.config.name, &failure.code, &failure.message);
            tracing::warn!(
                cursor,
                message_id,
                code,
                error,
                hint = failure.hint,
                "row not accepted: its lane waits, others continue"
            );
            let message = format!("{} {ONLY_ITS_LANE}", failure.message);
            report::retry(self.engine, self.ready, &Failure { message, ..failure.clone() }, message_id, None).await;
        }
        let interval = self.ready.sink.min_interval();
        // For single messages the rows beyond are not read again at once.
        if rows >= self.ready.config.lanes.in_flight {
            return interval.map_or((Next::Look, Then::Again), |interval| (Next::After(interval), Then::End));
        }
        let reading = (self.took * 4).clamp(SHORTEST_LANE_PAUSE, LONGEST_LANE_PAUSE);
        let pause = reading.min(attempt.max(SHORTEST_LANE_PAUSE)).max(interval.unwrap_or_default());
        (Next::After(pause), Then::End)
    }
}
