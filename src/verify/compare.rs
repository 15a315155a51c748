//! The comparison: both sides once for the sums, once more for the ids that differ, and each of these by itself.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rdkafka::message::{BorrowedMessage, Message as _};

use super::candidates::{Candidates, Keys};
use super::eras::{Eras, PlacedRecord};
use super::history::Standing;
use super::operations::History;
use super::order::{Below, Order};
use super::record::Reading;
use super::report::Report;
use super::retained::{BUILT_IN, Retained};
use super::sketch::{Part, Sketch};
use super::topic::{self, Span, Watch};
use super::{Error, Problem, Range, Subject};
use crate::database::Session;
use crate::position::{Position, Timestamp};
use crate::source::range::{self, Bounds, PlacedRow, Way};
use crate::source::shape::IdType;

mod basis;

/// Clocks of publishers, brokers and the database may differ by so much: records are looked for from this long before.
const CLOCKS: Duration = Duration::from_secs(300);
/// So many ids are looked at by themselves, at most.
const MOST: usize = 100_000;
/// So often both sides are read again for parts in which too much differs.
const PASSES: usize = 8;

/// What records belong to the range.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) range: Range,
    /// Later ones are of rows that were not passed when the table was read.
    newest: Timestamp,
    /// Older ones are of rows that the schema's own retention has removed.
    oldest: Timestamp,
}

impl Window {
    pub(super) fn has(&self, at: Timestamp) -> bool {
        self.range.since <= at && at < self.range.until && at <= self.newest
    }
}

/// One reading of both sides.
struct Sums {
    sketch: Sketch,
    order: Order,
    rows: u64,
    records: u64,
    without_id: u64,
    /// Of others than the publisher.
    foreign: u64,
    pruned: u64,
}

/// What a comparison works with.
pub(super) struct Work<'a> {
    pub(super) subject: &'a Subject,
    pub(super) session: &'a Session,
    pub(super) watch: &'a Arc<Watch>,
    pub(super) keys: Keys,
    bounds: Vec<Option<Bounds>>,
    pub(super) window: Window,
    pub(super) reading: Reading,
    pub(super) history: History,
    pub(super) standings: Vec<Option<Standing>>,
    pub(super) retained: Retained,
}

impl Subject {
    /// Compares the rows of a range with their records.
    ///
    /// # Errors
    /// When one side cannot be read, or what is missing cannot be told from what was removed.
    pub async fn compare(&self, session: &Session, range: Range, watch: &Arc<Watch>) -> Result<Report, Error> {
        let (work, mut notes) = self.work(session, range, watch).await?;
        let (sums, mut candidates, complete) = work.differing().await?;
        self.is_read_right(&sums)?;
        let Range { mut since, until } = work.window.range;
        if sums.pruned > 0 {
            since = since.max(work.window.oldest.min(until));
            notes.push(format!("{} records are older than the oldest row of {BUILT_IN}", sums.pruned));
        }
        let report = Report {
            topic: self.topics.to_string(),
            table: sums.rows,
            delivered: sums.rows,
            pending: work.pending().await?,
            records: sums.records,
            without_id: sums.without_id,
            complete,
            notes,
            ..Report::empty(&self.name, Range { since, until })
        };
        let report = if candidates.is_empty() {
            report
        } else {
            let read = work.look(&mut candidates).await?;
            work.judge(report, candidates, read).await?
        };
        work.finished(report, sums.order.unjudged).await
    }

    /// A publisher on trial is not convicted by a wrong argument.
    fn is_read_right(&self, sums: &Sums) -> Result<(), Problem> {
        if self.cursors.is_some() || sums.records > 0 {
            return Ok(());
        }
        if sums.without_id > 0 {
            let what = format!("no record of topic {} has an id at {} (--id)", self.topics, self.reading.id);
            return Err(Problem::new(what, "Name the place: header:NAME, or payload:$.name.name of a JSON payload."));
        }
        if let (Some((name, values)), true) = (&self.reading.relay, sums.foreign > 0) {
            let what = format!("no record of topic {} has {name}={} (--relay-header)", self.topics, values.join(","));
            return Err(Problem::new(what, "Correct the header, or leave --relay-header out."));
        }
        Ok(())
    }
}

impl Work<'_> {
    /// Reads both sides until all differing ids are named, or too many.
    async fn differing(&self) -> Result<(Sums, Candidates, bool), Error> {
        let mut candidates = Candidates::new();
        let (mut parts, mut first, mut complete) = (vec![Part::default()], None, true);
        for pass in 0.. {
            let Some(part) = parts.pop() else { break };
            if pass >= PASSES || candidates.len() >= MOST {
                complete = false;
                break;
            }
            let mut sums = self.sums(part).await?;
            let sketch = std::mem::replace(&mut sums.sketch, Sketch::new(Part::default()));
            let mut decoded = sketch.decode();
            // What the topic lacks comes first: it is never left out for what it has too often.
            decoded.found.sort_unstable_by_key(|(key, count)| (std::cmp::Reverse(*count), *key));
            for (key, count) in decoded.found {
                if candidates.len() >= MOST {
                    complete = false;
                    break;
                }
                candidates.entry(key).or_default().lacking = count > 0;
            }
            parts.extend(decoded.undecoded);
            first.get_or_insert(sums);
        }
        let Some(mut sums) = first else { return Err(Problem::new("nothing was read", "").into()) };
        for below in std::mem::take(&mut sums.order.below) {
            if candidates.len() >= MOST && !candidates.contains_key(&below.key) {
                complete = false;
                break;
            }
            candidates.entry(below.key).or_default().suspects.push(below);
        }
        Ok((sums, candidates, complete))
    }

    /// Reads the table, then the topic, each as it is then.
    async fn sums(&self, part: Part) -> Result<Sums, Error> {
        let mut sketch = Sketch::new(part);
        let rows = self
            .rows(|_, _, id| {
                sketch.add(self.keys.of(id), 1);
            })
            .await?;
        let since = self.window.range.since.minus(CLOCKS);
        let spans = topic::survey(&self.subject.cluster, &self.subject.topics, since).await?;
        self.expect(&spans);
        let sums = Sums { sketch, order: Order::default(), rows, records: 0, without_id: 0, foreign: 0, pruned: 0 };
        let (keys, reading, window) = (self.keys.clone(), self.reading.clone(), self.window);
        let keeps = (self.subject.keeps, self.subject.shared);
        let eras = Eras::new(keeps, self.orders_ids(), self.history.handovers());
        let (has_keys, has_handovers) = (eras.has_keys(), eras.has_handovers());
        let see = move |sums: &mut Sums, span: usize, message: &BorrowedMessage<'_>| {
            let Some(seen) = reading.see(message) else {
                sums.foreign += 1;
                return;
            };
            let Some(id) = &seen.id else {
                sums.without_id += 1;
                return;
            };
            let Some(at) = seen.created_at.or_else(|| stamped(message)).filter(|at| window.has(*at)) else { return };
            if at < window.oldest {
                sums.pruned += 1;
                return;
            }
            sums.records += 1;
            if seen.replayed {
                return;
            }
            let key = keys.of(id);
            let partition = u32::try_from(span).unwrap_or(u32::MAX);
            let below = Below { key, partition, offset: message.offset() };
            let of_key = message.key().filter(|_| has_keys).map(|key| keys.lane(key));
            let made_at = Some(message).filter(|_| has_handovers).and_then(stamped);
            let record = PlacedRecord { partition, key: of_key, at, id, made_at };
            let is_judged = !seen.late && seen.created_at.is_some();
            let lanes = if is_judged { eras.lanes(record) } else { [None; 2] };
            // What comes again after a kill is remembered by itself: however much it is, the sums still name what is missing.
            if !lanes.into_iter().flatten().any(|(lane, place)| sums.order.see(lane, place, below)) {
                sums.sketch.add(key, -1);
            }
        };
        Ok(topic::read(&self.subject.cluster, &spans, self.watch, sums, see).await?)
    }

    /// Shows each row of the range that was passed, and counts them.
    pub(super) async fn rows(&self, mut see: impl FnMut(usize, Timestamp, &str)) -> Result<u64, Error> {
        let mut rows = 0;
        for (part, (shape, bounds)) in self.subject.parts.iter().zip(&self.bounds).enumerate() {
            let Some(bounds) = bounds else { continue };
            let count = |row: PlacedRow<'_>| {
                rows += 1;
                if rows % 1_000 == 0 {
                    self.watch.seen.fetch_add(1_000, Ordering::Relaxed);
                }
                see(part, row.created_at, row.id);
            };
            let way = Way { indexed: self.subject.indexed, transactions: false };
            range::each(self.session, shape, bounds, way, count).await?;
        }
        Ok(rows)
    }

    pub(super) fn expect(&self, spans: &[Span]) {
        self.watch.seen.store(0, Ordering::Relaxed);
        self.watch.total.store(spans.iter().map(Span::offsets).sum(), Ordering::Relaxed);
    }

    /// Whether ids can be compared here.
    fn orders_ids(&self) -> bool {
        let ids = self.subject.parts.first().map(|shape| shape.id_type);
        ids.is_some_and(|ids| ids != IdType::Text)
    }

    /// Rows that are in the range, and not passed yet.
    async fn pending(&self) -> Result<u64, Error> {
        if self.subject.cursors.is_none() {
            return Ok(0);
        }
        let mut rows = 0;
        for (number, shape) in self.subject.parts.iter().enumerate() {
            let since = Position { created_at: self.window.range.since, id: None };
            let position = self.standings.get(number).and_then(Option::as_ref).and_then(|found| found.position.clone());
            let after = position.filter(|position| position.created_at >= since.created_at).unwrap_or(since);
            let up_to = Position { created_at: self.window.range.until, id: None };
            if after.created_at < up_to.created_at {
                rows += range::count(self.session, shape, &Bounds { after, up_to }, i64::MAX).await?;
            }
        }
        Ok(rows)
    }
}

fn stamped(message: &BorrowedMessage<'_>) -> Option<Timestamp> {
    message.timestamp().to_millis().map(|millis| Timestamp::from_unix_micros(millis.saturating_mul(1_000)))
}
