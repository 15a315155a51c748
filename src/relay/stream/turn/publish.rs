//! The turn's side of publishing: reads rows and hands them to the sink side by side, and learns how much the next turn should take.
//!
//! The sink's side is `sink::Publication`; what follows from how it ended is `stream::after_publish`.

use std::time::{Duration, Instant};

use super::Turn;
use crate::cursor::LockedCursor;
use crate::cursor::turn_progress::TurnFacts;
use crate::late::Opened;
use crate::pace;
use crate::relay::OnPoison;
use crate::relay::stream::outcome::TurnError;
use crate::relay::stream::progress_writer::ProgressWriter;
use crate::relay::stream::read_ahead::{self, Ahead, BatchStream, Chain};
use crate::relay::stream::relayed::Relayed;
use crate::relay::stream::turn_buffer::TurnBuffer;
use crate::relay::stream::withheld::{Parked, Withheld};
use crate::sink::{Failure, Flow, Mode, Publication, Published};
use crate::source::fetch::{FetchError, Fetched};

/// How often acknowledgements are recorded while a turn waits for the last of them.
const WHILE_SETTLING: Duration = Duration::from_millis(50);

/// How many rows a turn has taken, and may have taken.
pub(in crate::relay) struct Taken {
    pub(in crate::relay) rows: usize,
    /// By the limit of this turn.
    pub(in crate::relay) wanted: usize,
    /// By the limit when the reading began.
    pub(in crate::relay) most: usize,
    /// The reading ended at its budget.
    pub(in crate::relay) spent: bool,
    /// By which the reading's budget was larger than configured.
    pub(in crate::relay) growth: usize,
    pub(in crate::relay) cut: bool,
}

impl Turn<'_> {
    /// Fetches and publishes side by side, until all is acknowledged, something fails, or the turn is cut.
    pub(super) async fn publish(
        &mut self,
        cursor: &LockedCursor,
        chain: &mut Chain,
        deadline: Instant,
    ) -> Result<Relayed, TurnError> {
        let (ready, suspects) = (self.ready, self.learned.suspects);
        let closed = cursor.closed();
        let mode = Mode {
            alone: suspects > 0,
            mark: None,
            partitions: self.partitions,
            until: Some(deadline),
            cut: None,
            backlog: chain.backlog && suspects == 0,
        };
        let mut publication = match ready.sink.begin_within(mode, cursor.transaction()).await {
            Ok(publication) => publication,
            Err(failure) => return Ok(Relayed::nothing(failure)),
        };
        let (wanted, next) = (self.row_limit(suspects), self.row_limit(0));
        let least = self.reads_at_least();
        let (begun, most_refused) = (Instant::now(), self.most_refused());
        let Ahead { mut rows, mut end, most, growth, .. } =
            chain.reading(self.engine, ready, self.learned, cursor, self.sighting, wanted.max(least));
        let opened = self.opened(cursor, &mut rows, deadline).await?;
        self.learned.opened(opened.as_ref());
        if opened.as_ref().is_some_and(|opened| self.is_for_late_rows(opened)) {
            publication.finish();
            return Ok(Relayed::late(opened));
        }
        let (writer, enough) = (self.progress_writer(cursor, opened.as_ref()), self.enough(opened.as_ref(), most));
        let (mut kept, mut learned) = (TurnBuffer::new(ready.audits()), self.learned);
        let mut parked = self.passing(Some(wanted).filter(|wanted| *wanted < least)).refusing(most_refused);
        let (mut fetched, mut fetch_time, mut tail) = (None, Duration::ZERO, Duration::ZERO);
        let reading = async {
            let outcome = end.wait().await;
            fetch_time = begun.elapsed();
            if let Ok(fetched) = &outcome {
                if fetched.rows > 0 {
                    learned.sizes = fetched.sizes;
                }
                // Of what was read only so many rows are published: where the turn will end is not known.
                if wanted >= least && most_refused == 0 && enough.is_none() {
                    chain.ahead = read_ahead::read_on(self.engine, ready, learned, fetched, next.max(least));
                }
            }
            fetched = Some(outcome);
        };
        let publishing = async { tail = send(&mut publication, &mut kept, &mut parked, (rows, enough), writer).await };
        let cut = tokio::select! {
            biased;
            () = closed.cancelled() => return Err(self.lock_lost(publication.acknowledged())),
            () = tokio::time::sleep_until(deadline.into()) => true,
            () = self.engine.cut.cancelled() => true,
            _ = async { tokio::join!(publishing, reading) } => false,
        };
        let published = parked.ended(publication.finish(), kept.rows());
        self.learned = learned;
        (self.timings.fetch, self.timings.publish, self.timings.tail) = (fetch_time, begun.elapsed(), tail);
        // Of a turn that looks for refused rows, its size says nothing.
        let spent = most_refused == 0 && matches!(&fetched, Some(Ok(fetched)) if fetched.spent);
        self.learn(&published, Taken { rows: kept.rows(), wanted, most, spent, growth, cut });
        let handed_over = parked.handed_over();
        let relayed = self.relayed((kept, parked.withheld, handed_over), published, fetched, cut)?;
        Ok(Relayed { opened, ..relayed })
    }

    /// How many rows that the sink would refuse are looked for. Where dead letters are copied to a topic, each is passed only when its
    /// copy is there; where keys are parked, what comes behind a refused row is not known before it is parked.
    fn most_refused(&self) -> usize {
        let ready = self.ready;
        let plain =
            ready.config.on_poison == OnPoison::DeadLetter && ready.letters.is_none() && ready.sink.may_refuse();
        // A circuit is closed by what the receiver takes.
        let asks = plain && self.learned.suspects == 0 && !ready.status.circuit_open();
        if asks { self.learned.letters.now() } else { 0 }
    }

    /// Rows that are only passed must not each take a turn.
    pub(in crate::relay) fn reads_at_least(&self) -> usize {
        if self.ready.filters() || !self.parked.keys.is_empty() || !self.ahead.is_empty() {
            read_ahead::LEAST
        } else {
            0
        }
    }

    /// What the reading has seen before its first row; none when the turn is cut before.
    pub(in crate::relay) async fn opened(
        &self,
        cursor: &LockedCursor,
        rows: &mut BatchStream,
        deadline: Instant,
    ) -> Result<Option<Opened>, TurnError> {
        let closed = cursor.closed();
        tokio::select! {
            biased;
            () = closed.cancelled() => Err(self.lock_lost(0)),
            () = tokio::time::sleep_until(deadline.into()) => Ok(None),
            () = self.engine.cut.cancelled() => Ok(None),
            opened = rows.opened() => Ok(opened.cloned()),
        }
    }

    /// Records the turn's progress, where it may be recorded: what came late must be written down with the snapshot that sees it, and
    /// rows of parked keys with the position that passes them, which is the advance's to do.
    fn progress_writer(&self, cursor: &LockedCursor, opened: Option<&Opened>) -> Option<ProgressWriter> {
        let plain = self.parked.keys.is_empty() && self.ready.records_progress();
        let recorded = opened.filter(|opened| opened.late.is_empty() && plain)?;
        Some(ProgressWriter::new(self.engine, self.facts(cursor), recorded.snapshot.clone()))
    }

    /// After how many rows a turn ends that has late rows and has grown, so that it might take up to `most`: it records no progress, and all
    /// of its rows would come again if it did not advance.
    fn enough(&self, opened: Option<&Opened>, most: usize) -> Option<usize> {
        let enough = pace::most_rows(self.ready.config.turn.rows, self.learned.growth, false);
        opened.filter(|opened| !opened.late.is_empty()).map(|_| enough).filter(|enough| *enough < most)
    }

    /// What this turn records of its progress beside the rows, as its advance will.
    pub(super) fn facts(&self, cursor: &LockedCursor) -> TurnFacts {
        let shape = &self.ready.shape;
        TurnFacts {
            cursor: self.ready.config.name.clone(),
            lock: cursor.turn_lock(),
            observed_at: self.sighting.horizon.observed_at,
            relations: std::iter::once(shape.root).chain(shape.descendants.iter().copied()).collect(),
            partitions: self.partitions,
            rests_on: self.rests_on.clone(),
            sweep: shape.sweep,
            by: self.engine.replica.clone(),
        }
    }

    /// Learns from publishing how many rows the next turn should take.
    pub(super) fn learn(&mut self, published: &Published, taken: Taken) {
        let (ready, publish) = (self.ready, self.timings.publish);
        let Taken { rows, wanted, most, spent, growth, cut } = taken;
        let most_rows = self.learned.most_rows(ready);
        // Rows that were read ahead by an older limit, or in too little time, say nothing about a larger turn.
        self.filled = spent && growth == self.learned.growth && (rows >= most_rows || rows < most);
        // However many it wanted, it could take no more than this.
        let wanted = wanted.min(most_rows);
        self.learned.slow = publish > ready.config.turn.time;
        if cut {
            self.learned.growth = 1;
        }
        if cut || rows >= wanted {
            self.learned.published(ready, wanted, publish);
        } else if published.stopped.as_ref().is_some_and(Failure::is_too_slow) {
            // One statement took all the time, for these rows and not for as many as there might have been.
            self.learned.published(ready, rows, publish);
        }
    }

    /// What was read and published, or the error of a turn that has neither.
    pub(super) fn relayed(
        &self,
        (kept, withheld, handed_over): (TurnBuffer, Withheld, usize),
        published: Published,
        fetched: Option<Result<Fetched, FetchError>>,
        cut: bool,
    ) -> Result<Relayed, TurnError> {
        let (ready, rows) = (self.ready, kept.rows() + withheld.rows());
        let passed = published.acknowledged + withheld.passed(published.acknowledged);
        let nothing_published = passed == 0 && published.stopped.is_none();
        let read_nothing = matches!(&fetched, Some(Ok(fetched)) if fetched.rows == 0);
        if cut && !read_nothing && nothing_published {
            // Nothing was read, or nothing was handed over, in time: that is no sign that nothing is there.
            return Err(FetchError::Late(ready.config.turn.deadline).into());
        }
        let fetched = match fetched {
            Some(Ok(fetched)) => fetched,
            // It is the first row after the position only if no other was read: those that there was no room for lie before it.
            Some(Err(FetchError::Unreadable(row))) if handed_over == 0 && published.stopped.is_none() => {
                return Ok(Relayed::unreadable(&row));
            }
            // Rows that were published before the reading failed are a true prefix; without any, the error is the turn's.
            Some(Err(error)) if nothing_published && !matches!(error, FetchError::Unreadable(_)) => {
                return Err(error.into());
            }
            Some(Err(error)) => {
                tracing::warn!(cursor = ready.config.name, %error, rows, "reading failed; continuing after what was read");
                Fetched { rows, more: true, ..Fetched::default() }
            }
            None => Fetched { rows, more: cut, ..Fetched::default() },
        };
        Ok(Relayed::new(kept, published, fetched, withheld))
    }
}

/// Pushes batches as they come, keeps them until they are acknowledged, and waits for the acknowledgements; how long it
/// waited for the last ones.
async fn send(
    publication: &mut Publication<'_>,
    kept: &mut TurnBuffer,
    parked: &mut Parked<'_>,
    (mut rows, enough): (BatchStream, Option<usize>),
    mut writer: Option<ProgressWriter>,
) -> Duration {
    while let Some((batch, room)) = rows.next().await {
        let refusals = parked.refusals(&batch, publication).await;
        let batch = parked.publishable(batch, refusals, kept.rows());
        if parked.withheld.refuses() {
            writer = None;
        }
        // Kept before it is pushed: a push that is cut half-way has published rows of it.
        let batch = kept.keep(batch);
        let stops = publication.push(batch).await == Flow::Stop;
        if stops || parked.is_full() || enough.is_some_and(|enough| kept.rows() >= enough) {
            // Nothing more is read, but what was pushed before the stop is on its way and counts when it arrives.
            rows.close();
            break;
        }
        drop(room);
        release(publication, kept, parked, writer.as_mut());
        // With all rows read there is nothing to wait for, and the loss of the lock must be seen all the same.
        tokio::task::yield_now().await;
    }
    let pushed = Instant::now();
    let settling = publication.settle();
    tokio::pin!(settling);
    while tokio::time::timeout(WHILE_SETTLING, &mut settling).await.is_err() {
        release(publication, kept, parked, writer.as_mut());
    }
    pushed.elapsed()
}

/// Gives back what has been acknowledged, and records that.
fn release(
    publication: &Publication<'_>,
    kept: &mut TurnBuffer,
    parked: &mut Parked<'_>,
    writer: Option<&mut ProgressWriter>,
) {
    kept.release(publication.acknowledged());
    parked.withheld.release(publication.acknowledged());
    if let Some(writer) = writer {
        writer.released(kept);
    }
}
