//! Sends the rows of one turn side by side, each lane in its order (`[relay.turn] in_flight`).
//!
//! Promise: no more messages are on their way, or acknowledged and not recorded, than `in_flight` says. What fails holds up its lane
//! alone; what is about the receiver as a whole ends the sending, and what is on its way is waited for.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::batch::Batch;
use crate::position::{Position, Timestamp};
use crate::relay::OnPoison;
use crate::relay::engine::disposition::{ForMessage, ForRelay, Sender, at_stop, disposition};
use crate::relay::setup::lane_memory::Lane;
use crate::relay::setup::prepared::PreparedStream;
use crate::relay::stream::lane_recorder::LaneRecorder;
use crate::relay::stream::lanes::LaneQueues;
use crate::relay::stream::read_ahead::Rows;
use crate::relay::stream::turn_buffer::Kept;
use crate::relay::stream::withheld::Parked;
use crate::sink::{Class, Failure, Mode, Published};

/// When so many lanes fail one after the other, and no message is accepted between them, the receiver is out.
const OUTAGE: usize = 5;

/// See the module.
pub(in crate::relay) struct SideBySide<'a> {
    ready: &'a Arc<PreparedStream>,
    mode: Mode,
    pub(in crate::relay) lanes: LaneQueues,
    pub(in crate::relay) recorder: LaneRecorder,
    sending: JoinSet<(usize, Published)>,
    /// How many may be sent in this turn, and how many more.
    most: usize,
    left: usize,
    last_start: Option<Instant>,
    failures: HashMap<usize, Failure>,
    /// Why nothing more is sent.
    whole: Option<Failure>,
    stop: CancellationToken,
}

/// How sending ended.
#[derive(Debug)]
pub(in crate::relay) struct Ended {
    pub(in crate::relay) published: Published,
    /// Rows behind the prefix that were acknowledged: when they were created, and where they stand.
    pub(in crate::relay) beyond: Vec<Position>,
    /// The prefix ends at a lane that waits, and the others go on.
    pub(in crate::relay) lane_waits: bool,
}

impl<'a> SideBySide<'a> {
    pub(in crate::relay) fn new(
        ready: &'a Arc<PreparedStream>,
        mode: Mode,
        recorder: LaneRecorder,
        most: usize,
        stop: CancellationToken,
    ) -> Self {
        Self {
            ready,
            mode,
            lanes: LaneQueues::default(),
            recorder,
            sending: JoinSet::new(),
            most,
            left: most,
            last_start: None,
            failures: HashMap::new(),
            whole: None,
            stop,
        }
    }

    /// Sends until all is acknowledged that may be sent in this turn, or nothing more may be.
    pub(in crate::relay) async fn run(&mut self, kept: &mut Kept, parked: &mut Parked<'_>, mut rows: Rows) {
        let mut reads = true;
        loop {
            self.start(kept);
            self.recorder.record(&self.lanes, kept);
            if !reads && self.sending.is_empty() && !self.may_go_on() {
                return;
            }
            let wants = self.lanes.has_next() && self.may_go_on();
            let pause = self.pause().filter(|_| wants);
            tokio::select! {
                next = rows.next(), if reads => match next {
                    Some((batch, _room)) => {
                        self.take(batch, kept, parked);
                        if parked.is_full() || self.lanes.open() >= self.most {
                            rows.close();
                        }
                    }
                    None => reads = false,
                },
                Some(ended) = self.sending.join_next(), if !self.sending.is_empty() => {
                    let (row, published) = ended.unwrap_or_else(|failed| std::panic::resume_unwind(failed.into_panic()));
                    self.ended(row, published, kept);
                    kept.release(self.lanes.prefix());
                    parked.withheld.release(self.lanes.prefix());
                }
                () = self.recorder.recorded(), if self.recorder.has_open() => {}
                () = tokio::time::sleep(pause.unwrap_or_default()), if pause.is_some() => {}
                () = self.stop.cancelled(), if !self.stop.is_cancelled() => {}
            }
        }
    }

    /// Whether a row may still be sent in this turn.
    fn may_go_on(&self) -> bool {
        self.lanes.has_next()
            && self.left > 0
            && self.whole.is_none()
            && !self.mode.is_over()
            && !self.stop.is_cancelled()
    }

    /// How long the rate asks to wait.
    fn pause(&self) -> Option<Duration> {
        let (interval, last) = (self.ready.sink.min_interval()?, self.last_start?);
        Some(interval.saturating_sub(last.elapsed())).filter(|pause| !pause.is_zero())
    }

    fn take(&mut self, batch: Batch, kept: &mut Kept, parked: &mut Parked<'_>) {
        let batch = parked.publishable(batch, kept.rows());
        let (batch, now) = (kept.keep(batch), Instant::now());
        for message in batch.messages() {
            let lane = self.ready.lane.as_ref().and_then(|lane| lane.of(&message)).map(Cow::into_owned);
            self.lanes.push(lane, |lane| self.ready.waiting.blocks(lane, &message, now));
        }
    }

    /// Sends what may be sent.
    fn start(&mut self, kept: &Kept) {
        let most = self.ready.config.lanes.in_flight;
        while self.may_go_on() && self.sending.len() + self.recorder.open() < most && self.pause().is_none() {
            let Some((row, message)) = self.lanes.next().and_then(|row| Some((row, alone(kept, row)?))) else { return };
            (self.left, self.last_start) = (self.left - 1, Some(Instant::now()));
            let (ready, mode) = (Arc::clone(self.ready), self.mode);
            self.sending.spawn(async move { (row, send(&ready, mode, &message).await) });
        }
    }

    fn ended(&mut self, row: usize, published: Published, kept: &Kept) {
        let Some((batch, at)) = kept.locate(row) else { return };
        let lane = self.lanes.lane(row).clone();
        if published.acknowledged > 0 {
            self.recorder.acknowledged(row, batch.position(at));
            self.lanes.acknowledged(row);
            self.ready.waiting.accepted(&lane);
            return;
        }
        self.lanes.failed(row);
        let Some(failure) = published.stopped else { return };
        let fails = disposition(self.sender(), &failure).message == ForMessage::Fails;
        let halts = at_stop(&failure).relay == ForRelay::Halts && failure.class == Class::Fatal;
        let failing = self.ready.waiting.failed(&lane, &batch.message(at), failure.clone(), Instant::now());
        let several = if self.ready.lane.is_some() { OUTAGE.min(self.ready.config.lanes.in_flight) } else { 1 };
        let is_out = failure.is_outage() && failing >= several;
        if self.whole.is_none() && !fails && (halts || is_out || failure.retry_after.is_some()) {
            self.whole = Some(failure.clone());
        }
        self.failures.insert(row, failure);
    }

    fn sender(&self) -> Sender {
        Sender::Stream { on_poison: self.ready.config.on_poison, several: false, passed: false }
    }

    /// Whether there was no time to send all that could be sent.
    pub(in crate::relay) fn ran_out_of_time(&self) -> bool {
        self.lanes.has_next() && self.mode.is_over()
    }

    /// How it ended; what is on its way is given up.
    pub(in crate::relay) fn finish(self, kept: &Kept) -> Ended {
        let prefix = self.lanes.prefix();
        let beyond: Vec<Position> =
            self.lanes.beyond().filter_map(|row| kept.locate(row)).map(|(batch, row)| batch.position(row)).collect();
        let first = (prefix < self.lanes.rows()).then(|| self.lanes.lane(prefix).clone());
        let own = first.as_ref().and_then(|lane| self.of_lane(lane, prefix, kept));
        let lane_waits = self.whole.is_none() && own.is_some();
        if let (Some(lane), Some(failure)) = (&first, &own)
            && failure.class != Class::Retry
        {
            // It is decided now: an operator who has it sent again shall not wait for its pause.
            self.ready.waiting.forget(lane);
        }
        let on_its_way = first.is_some() && !self.sending.is_empty();
        let stopped = self.whole.or(own).or_else(|| on_its_way.then(Failure::deadline));
        Ended { published: Published { acknowledged: prefix, stopped, suspects: 1 }, beyond, lane_waits }
    }

    /// Why the first row that was not acknowledged was not, if its lane waits.
    fn of_lane(&self, lane: &Lane, row: usize, kept: &Kept) -> Option<Failure> {
        let (batch, at) = kept.locate(row)?;
        let now = Instant::now();
        let is_waiting = self.failures.contains_key(&row) || self.ready.waiting.blocks(lane, &batch.message(at), now);
        let waiting = self.ready.waiting.of(lane).filter(|_| is_waiting)?;
        let parks = self.ready.config.on_poison == OnPoison::ParkKey;
        let failure = waiting.failure.clone();
        let is_last = parks && failure.class == Class::Retry && waiting.waits_for(now) >= self.ready.config.lanes.hold;
        Some(if is_last { given_up(failure) } else { failure })
    }

    /// When the rows were created that were acknowledged, wherever they stand.
    pub(in crate::relay) fn delivered(&self, kept: &Kept) -> Vec<Timestamp> {
        let beyond =
            self.lanes.beyond().filter_map(|row| kept.locate(row)).map(|(batch, row)| batch.position(row).created_at);
        kept.instants(self.lanes.prefix()).into_iter().chain(beyond).collect()
    }
}

/// A lane has been retried for as long as it may.
fn given_up(failure: Failure) -> Failure {
    let hint = format!("Its lane was retried for lane_hold, and its key is parked now. {}", failure.hint);
    Failure { class: Class::Poison, ambiguous: false, hint, ..failure }
}

fn alone(kept: &Kept, row: usize) -> Option<Batch> {
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
