//! A turn whose messages are sent side by side (`[relay.turn] in_flight`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Turn;
use super::publish::Taken;
use crate::cursor::LockedCursor;
use crate::cursor::ahead::Beyond;
use crate::late::Opened;
use crate::relay::stream::lane_recorder::LaneRecorder;
use crate::relay::stream::outcome::TurnError;
use crate::relay::stream::read_ahead::{Ahead, Chain};
use crate::relay::stream::relayed::Relayed;
use crate::relay::stream::side_by_side::{Ended, SideBySide};
use crate::relay::stream::turn_buffer::TurnBuffer;
use crate::relay::stream::withheld::Parked;
use crate::sink::{Failure, Mode};
use crate::source::fetch::{FetchError, Fetched};

/// How much longer than the sink's time-out an answer may take until it is known.
const LATE: Duration = Duration::from_millis(750);

impl<'a> Turn<'a> {
    /// Fetches and publishes side by side, until all that may be sent is acknowledged, or nothing more may be.
    pub(super) async fn publish_lanes(
        &mut self,
        cursor: &LockedCursor,
        chain: &mut Chain,
        deadline: Instant,
    ) -> Result<Relayed, TurnError> {
        let ready = self.ready;
        // What was read ahead begins where this turn would have ended with all of its rows acknowledged.
        chain.ahead = None;
        let wanted = self.row_limit(0);
        let left = if ready.status.circuit_open() { wanted } else { ready.config.turn.rows };
        let reads = ready.config.lanes.window.max(self.reads_at_least());
        let begun = Instant::now();
        let Ahead { mut rows, mut end, most, growth, .. } =
            chain.reading(self.engine, ready, self.learned, cursor, self.sighting, reads);
        let opened = self.opened(cursor, &mut rows, deadline).await?;
        self.learned.opened(opened.as_ref());
        if opened.as_ref().is_some_and(|opened| self.is_for_late_rows(opened)) {
            return Ok(Relayed::late(opened));
        }
        let recorder = self.lane_recorder(cursor, opened.as_ref());
        let until = self.last_start(deadline);
        let mut side =
            SideBySide::new(ready, self.side_mode(deadline), recorder, until, (wanted, left), self.engine.stop.clone());
        let mut kept = TurnBuffer::new(ready.audits());
        let mut parked = self.passing(None);
        let (mut fetched, mut fetch_time) = (None, Duration::ZERO);
        let closed = cursor.closed();
        let cut = {
            let reading = async {
                fetched = Some(end.wait().await);
                fetch_time = begun.elapsed();
            };
            let publishing = side.run(&mut kept, &mut parked, rows);
            tokio::select! {
                biased;
                () = closed.cancelled() => None,
                () = tokio::time::sleep_until(deadline.into()) => Some(true),
                () = self.engine.cut.cancelled() => Some(true),
                _ = async { tokio::join!(publishing, reading) } => Some(false),
            }
        };
        let Some(cut) = cut else { return Err(self.lock_lost(side.recorder.open())) };
        if let Some(Ok(fetched)) = &fetched
            && fetched.rows > 0
        {
            self.learned.sizes = fetched.sizes;
        }
        (self.timings.fetch, self.timings.publish) = (fetch_time, begun.elapsed());
        side.recorder.settle().await;
        if side.recorder.lost {
            return Err(self.lock_lost(side.recorder.open()));
        }
        let cut_short = cut || side.ran_out_of_time();
        let rows = side.lanes.all_acknowledged();
        let taken = Taken { rows, wanted, most, spent: false, growth, cut: cut_short };
        let wrote = cursor.has_ahead || side.recorder.wrote;
        let relayed = self.ended_lanes(side, (kept, parked), (fetched, cut), taken)?;
        let beyond = relayed.beyond.filter(|beyond| wrote || !beyond.rows.is_empty());
        Ok(Relayed { opened, beyond, ..relayed })
    }

    /// What was read and sent.
    pub(in crate::relay) fn ended_lanes(
        &mut self,
        side: SideBySide<'_>,
        (kept, mut parked): (TurnBuffer, Parked<'_>),
        (fetched, cut): (Option<Result<Fetched, FetchError>>, bool),
        taken: Taken,
    ) -> Result<Relayed, TurnError> {
        self.delivered = side.delivered(&kept);
        let parked_keys = u64::try_from(self.parked.keys.len()).unwrap_or(u64::MAX);
        let is_all = matches!(&fetched, Some(Ok(fetched)) if !fetched.more);
        let Ended { mut published, beyond, lane_waits, at } = side.finish(&kept, parked_keys, is_all);
        if cut && !beyond.is_empty() {
            // What was accepted beyond is remembered, also where the first row had no time.
            published.stopped.get_or_insert_with(Failure::deadline);
        }
        let published = parked.ended(published, kept.rows());
        self.learn(&published, taken);
        let handed_over = parked.handed_over();
        let relayed = self.relayed((kept, parked.withheld, handed_over), published, fetched, cut)?;
        let beyond = Some(Beyond { rows: beyond, is_last: false });
        Ok(Relayed { beyond, lane_waits, at, ..relayed })
    }

    /// What came late must be written down with the snapshot that sees it, and rows of parked keys with the position that passes them: then
    /// the prefix is the advance's to record.
    pub(in crate::relay) fn lane_recorder(&self, cursor: &LockedCursor, opened: Option<&Opened>) -> LaneRecorder {
        let plain = self.parked.keys.is_empty() && opened.is_some_and(|opened| opened.late.is_empty());
        let snapshot = opened.filter(|_| plain).map(|opened| opened.snapshot.clone());
        LaneRecorder::new(self.engine, self.facts(cursor), snapshot)
    }

    /// What becomes of the rows that are read.
    pub(in crate::relay) fn passing(&self, most: Option<usize>) -> Parked<'a> {
        Parked::new(self.ready, self.parked.keys.clone(), most)
            .passing(Arc::clone(&self.ahead))
            .traced(self.trace.clone())
    }

    pub(in crate::relay) fn side_mode(&self, deadline: Instant) -> Mode {
        Mode { until: Some(deadline), cut: Some(deadline), partitions: self.partitions, ..Mode::default() }
    }

    /// The last message begins while there is still time for its answer, which the sink's time-out bounds, and for its record.
    pub(in crate::relay) fn last_start(&self, deadline: Instant) -> Instant {
        let turn = &self.ready.config.turn;
        let answer = self.ready.sink.timeout().map_or_else(|| turn.call_deadline(), |timeout| timeout + LATE);
        let answer = answer.min(turn.call_deadline());
        deadline.checked_sub(answer + turn.deadline / 10).unwrap_or(deadline)
    }
}
