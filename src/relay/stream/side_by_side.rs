//! Sends the rows of one turn side by side, each lane in its order (`[relay.turn] in_flight`).
//!
//! Promise: no more messages are on their way, or acknowledged and not recorded, than `in_flight` says. What fails holds up its lane
//! alone; what is about the receiver as a whole ends the sending, and what is on its way is waited for.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::batch::Batch;
use crate::position::Position;
use crate::relay::setup::prepared::PreparedStream;
use crate::relay::stream::lane_recorder::LaneRecorder;
use crate::relay::stream::lanes::LaneQueues;
use crate::relay::stream::read_ahead::BatchStream;
use crate::relay::stream::turn_buffer::TurnBuffer;
use crate::relay::stream::withheld::Parked;
use crate::sink::{Failure, Mode, Published};
use crate::source::fetch::Room;

/// While fewer lanes than may be sent have rows, reading goes on; behind so many rows of each it ends.
const ROWS_OF_A_LANE: usize = 20;

mod answer;
mod ended;
mod once;

pub(in crate::relay) use ended::Ended;
pub(in crate::relay) use once::Doubtful;

/// See the module.
pub(in crate::relay) struct SideBySide<'a> {
    ready: &'a Arc<PreparedStream>,
    mode: Mode,
    pub(in crate::relay) lanes: LaneQueues,
    pub(in crate::relay) recorder: LaneRecorder,
    sending: JoinSet<(usize, Published)>,
    /// How many may be on their way.
    in_flight: usize,
    /// How many rows are read where enough lanes have some.
    most: usize,
    /// How many more may be sent in this turn.
    left: usize,
    /// The circuit is open: one message tries the receiver.
    probes: bool,
    /// Nothing is sent from then on but the first message.
    until: Instant,
    /// There may be more rows.
    reads: bool,
    last_start: Option<Instant>,
    failures: HashSet<usize>,
    /// When the first of the lanes that wait may be sent again.
    next_attempt: Option<Instant>,
    /// The reading has come to its end.
    read_all: bool,
    /// At which row, and why, nothing more is sent.
    whole: Option<(usize, Failure)>,
    /// No row may be sent twice (`at_most_once`).
    once: bool,
    /// Rows on their way, where none may be sent twice.
    flying: HashMap<usize, Position>,
    /// Rows that were passed without a clear answer.
    pub(in crate::relay) doubtful: Vec<Doubtful>,
    stop: CancellationToken,
}

impl<'a> SideBySide<'a> {
    /// Sends at most `left` rows, and reads no more than `most` where enough lanes have rows.
    pub(in crate::relay) fn new(
        ready: &'a Arc<PreparedStream>,
        mode: Mode,
        recorder: LaneRecorder,
        until: Instant,
        (most, left): (usize, usize),
        stop: CancellationToken,
    ) -> Self {
        let in_flight = ready.config.lanes.in_flight.min(ready.sink.at_once().unwrap_or(usize::MAX)).max(1);
        Self {
            ready,
            mode,
            lanes: LaneQueues::default(),
            recorder,
            sending: JoinSet::new(),
            in_flight,
            most: most.max(in_flight * ROWS_OF_A_LANE),
            left,
            probes: ready.status.circuit_open(),
            until,
            reads: true,
            last_start: None,
            failures: HashSet::new(),
            next_attempt: None,
            read_all: false,
            whole: None,
            once: false,
            flying: HashMap::new(),
            doubtful: Vec::new(),
            stop,
        }
    }

    /// Sends until all is acknowledged that may be sent in this turn, or nothing more may be.
    pub(in crate::relay) async fn run(&mut self, kept: &mut TurnBuffer, parked: &mut Parked<'_>, rows: BatchStream) {
        self.send(kept, parked, Some(rows)).await;
    }

    /// The same, with what is still to be read, if anything is.
    async fn send(&mut self, kept: &mut TurnBuffer, parked: &mut Parked<'_>, mut rows: Option<BatchStream>) {
        let mut closed = false;
        loop {
            self.start(kept);
            self.recorder.record(&self.lanes, kept);
            if self.reads && self.is_over() {
                close(&mut rows);
                self.reads = false;
            }
            if !self.reads && self.sending.is_empty() && !self.may_go_on() {
                return;
            }
            // With room for a row that may be sent, only the rate asks to wait.
            let waits = self.may_go_on() && self.has_room();
            let pause = self.pause().unwrap_or_default();
            tokio::select! {
                next = next_of(&mut rows), if self.reads => match next {
                    Some((batch, _room)) => {
                        let batch = parked.publishable(batch, None, kept.rows());
                        self.take(batch, kept);
                        // Nothing may be taken that stands behind a row for which there is no room.
                        self.reads = !parked.is_full();
                        if !self.reads || self.has_enough() {
                            close(&mut rows);
                            closed = true;
                        }
                    }
                    None => (self.reads, self.read_all) = (false, !closed),
                },
                Some(ended) = self.sending.join_next(), if !self.sending.is_empty() => {
                    self.joined(ended, kept);
                    // What was answered with it is recorded with it.
                    while let Some(ended) = self.sending.try_join_next() {
                        self.joined(ended, kept);
                    }
                    kept.release(self.lanes.prefix());
                    parked.withheld.release(self.lanes.prefix());
                }
                () = self.recorder.recorded(), if self.recorder.has_open() => {}
                () = tokio::time::sleep(pause), if waits => {}
                () = self.stop.cancelled(), if !self.stop.is_cancelled() => {}
            }
        }
    }

    /// Whether a row may still be sent in this turn.
    fn may_go_on(&self) -> bool {
        let any = self.takes_any();
        self.lanes.has_next(|lane| any || !self.ready.waiting.is_out(lane)) && !self.is_over()
    }

    /// Whether a row of any lane may be sent. What tries a receiver that is out is of a lane that it has not failed for, as long as there may
    /// be one.
    fn takes_any(&self) -> bool {
        !self.probes || !self.reads && !self.lanes.has_next(|lane| !self.ready.waiting.is_out(lane))
    }

    /// Whether nothing more may be sent, whatever is read.
    fn is_over(&self) -> bool {
        self.left == 0
            || self.whole.is_some()
            || self.recorder.lost
            || (self.once || self.last_start.is_some()) && Instant::now() >= self.until
            || self.stop.is_cancelled()
    }

    fn has_room(&self) -> bool {
        self.sending.len() + self.recorder.open() < self.in_flight
    }

    /// Whether lanes enough have rows: those of one lane must not keep others from being read.
    fn has_enough(&self) -> bool {
        self.lanes.open() >= self.most && self.lanes.sendable() >= self.in_flight
    }

    /// How long the rate asks to wait.
    fn pause(&self) -> Option<Duration> {
        let (interval, last) = (self.ready.sink.min_interval()?, self.last_start?);
        Some(interval.saturating_sub(last.elapsed())).filter(|pause| !pause.is_zero())
    }

    fn take(&mut self, batch: Batch, kept: &mut TurnBuffer) {
        let (batch, now) = (kept.keep(batch), Instant::now());
        for message in batch.messages() {
            let lane = self.ready.lane.as_ref().and_then(|lane| lane.of(&message)).map(Cow::into_owned);
            let next_attempt = &mut self.next_attempt;
            self.lanes.push(lane, |lane| {
                let until = self.ready.waiting.blocked_until(lane, &message, now);
                *next_attempt = next_attempt.iter().copied().chain(until).min();
                until.is_some()
            });
        }
    }

    /// Sends what may be sent.
    fn start(&mut self, kept: &TurnBuffer) {
        while self.may_go_on() && self.has_room() && self.pause().is_none() {
            let (any, waiting) = (self.takes_any(), &self.ready.waiting);
            let next = self.lanes.next(|lane| any || !waiting.is_out(lane));
            let Some((row, message)) = next.and_then(|row| Some((row, alone(kept, row)?))) else { return };
            (self.left, self.last_start) = (self.left - 1, Some(Instant::now()));
            if self.once {
                self.flying.insert(row, message.position(0));
            }
            let (ready, mode) = (Arc::clone(self.ready), self.mode);
            self.sending.spawn(async move { (row, send(&ready, mode, &message).await) });
        }
    }

    /// Whether there was no time to send all that could be sent.
    pub(in crate::relay) fn ran_out_of_time(&self) -> bool {
        self.lanes.has_next(|_| true) && Instant::now() >= self.until
    }
}

/// What is read next; without anything to read it does not end.
async fn next_of(rows: &mut Option<BatchStream>) -> Option<(Batch, Room)> {
    match rows {
        Some(rows) => rows.next().await,
        None => std::future::pending().await,
    }
}

fn close(rows: &mut Option<BatchStream>) {
    if let Some(rows) = rows {
        rows.close();
    }
}

fn alone(kept: &TurnBuffer, row: usize) -> Option<Batch> {
    kept.locate(row).map(|(batch, row)| batch.alone(row))
}

async fn send(ready: &PreparedStream, mode: Mode, message: &Batch) -> Published {
    let mut publication = match ready.sink.begin(mode).await {
        Ok(publication) => publication,
        Err(failure) => return Published { acknowledged: 0, stopped: Some(failure), suspects: 1 },
    };
    publication.push(message).await;
    publication.settle().await;
    publication.finish()
}
