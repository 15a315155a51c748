//! The comparison: both sides once for the sums, once more for the ids that differ, and each of these by itself.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rdkafka::message::{BorrowedMessage, Message as _};

use super::candidates::{Candidate, Candidates, Keys};
use super::decide::{Evidence, Kind, Known, decide};
use super::history::{History, Standing};
use super::order::{Below, Lane, Order, Place};
use super::record::Seen;
use super::report::{Difference, Report};
use super::retained::Retained;
use super::sketch::{Part, Sketch};
use super::topic::{self, Span, Watch};
use super::{Error, Keeps, Problem, Range, Subject};
use crate::database::Session;
use crate::position::{Position, Timestamp};
use crate::relay::Start;
use crate::source::range::{self, Bounds};
use crate::source::shape::IdType;

/// Clocks of publishers, brokers and the database may differ by so much: records are looked for from this long before.
const CLOCKS: Duration = Duration::from_secs(300);
/// The same for records that are missed.
const CLOCKS_AT_WORST: Duration = Duration::from_secs(3_600);
/// So many ids are looked at by themselves, at most.
const MOST: usize = 100_000;
/// So often both sides are read again for parts in which too much differs.
const PASSES: usize = 8;
/// The table whose delivered rows are pruned.
const BUILT_IN: &str = "outbox.message";
/// Ids of one question.
const IDS: usize = 1_000;
/// A range from which retention may have removed more rows than this begins later.
const REMOVED: i64 = 20_000;

/// What records belong to the range.
#[derive(Clone, Copy, Debug)]
struct Window {
    range: Range,
    /// Later ones are of rows that were not passed when the table was read.
    newest: Timestamp,
    /// Older ones are of rows that the schema's own retention has removed.
    oldest: Timestamp,
}

impl Window {
    fn has(&self, at: Timestamp) -> bool {
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
    pruned: u64,
}

/// What a comparison works with.
struct Work<'a> {
    subject: &'a Subject,
    session: &'a Session,
    watch: &'a Arc<Watch>,
    keys: Keys,
    bounds: Vec<Option<Bounds>>,
    window: Window,
    reading: super::record::Reading,
}

impl Subject {
    /// Compares the rows of a range with their records.
    ///
    /// # Errors
    /// When one side cannot be read, or what is missing cannot be told from what was removed.
    pub async fn compare(&self, session: &Session, range: Range, watch: &Arc<Watch>) -> Result<Report, Error> {
        let (mut range, mut notes) = (range, Vec::new());
        let history = match &self.cursors {
            Some(cursors) => cursors.history(session).await?,
            None => History::default(),
        };
        // Before the table: a row that is passed later is not due yet.
        let standings = match &self.cursors {
            Some(cursors) => cursors.standings(session).await?,
            None => Vec::new(),
        };
        let spans = topic::survey(&self.cluster, &self.topics, range.since.minus(CLOCKS)).await?;
        let retained = self.retained(&spans, range.since, watch).await?;
        if let Retained::After(at) = &retained
            && self.rows_up_to(session, range.since, *at).await? >= u64::try_from(REMOVED).unwrap_or(0)
        {
            notes.push(format!("the topic has nothing from before {at}: the range begins there"));
            range.since = at.plus(Duration::from_micros(1));
        }
        let reading = super::record::Reading {
            relay: self.reading.relay.clone().map(|(header, names)| match &self.cursors {
                Some(_) => (header, history.names.clone()),
                None => (header, names),
            }),
            ..self.reading.clone()
        };
        let bounds = self.bounds(range, &standings);
        let newest = bounds.iter().flatten().map(|bounds| bounds.up_to.created_at).max();
        let newest =
            if self.cursors.is_some() { newest.unwrap_or(Timestamp::NEG_INFINITY) } else { Timestamp::INFINITY };
        let window = Window { range, newest, oldest: self.oldest(session).await? };
        let work = Work { subject: self, session, watch, keys: Keys::default(), bounds, window, reading };
        let (sums, mut candidates, complete) = work.differing().await?;
        let report = Report {
            name: self.name.clone(),
            topic: self.topics.to_string(),
            since: range.since,
            until: range.until,
            table: sums.rows,
            delivered: sums.rows,
            pending: work.pending(&standings).await?,
            records: sums.records,
            without_id: sums.without_id,
            known: BTreeMap::new(),
            counts: BTreeMap::new(),
            differences: Vec::new(),
            complete,
            notes,
        };
        let mut report = report;
        if sums.pruned > 0 {
            report.since = range.since.max(window.oldest.min(range.until));
            report.notes.push(format!("{} records are older than the oldest row of {}", sums.pruned, BUILT_IN));
        }
        let unjudged = sums.order.unjudged;
        let report = if candidates.is_empty() {
            report
        } else {
            let read = work.look(&mut candidates).await?;
            work.judge(report, candidates, &history, &standings, &retained, read).await?
        };
        work.finished(report, unjudged, &retained).await
    }

    /// The oldest row of the built-in outbox, whose delivered rows are pruned; of other tables no row is known to be.
    async fn oldest(&self, session: &Session) -> Result<Timestamp, Error> {
        match self.parts.first().filter(|shape| shape.config.table.to_string() == BUILT_IN) {
            None => Ok(Timestamp::NEG_INFINITY),
            Some(shape) => Ok(range::oldest(session, shape).await?.unwrap_or(Timestamp::INFINITY)),
        }
    }

    async fn rows_up_to(&self, session: &Session, since: Timestamp, at: Timestamp) -> Result<u64, Error> {
        let Some(shape) = self.parts.first() else { return Ok(0) };
        let bounds =
            Bounds { after: Position { created_at: since, id: None }, up_to: Position { created_at: at, id: None } };
        Ok(range::count(session, shape, &bounds, REMOVED).await?)
    }

    /// The rows of each part that are in the range and passed; none of a part that has none.
    fn bounds(&self, range: Range, standings: &[Option<Standing>]) -> Vec<Option<Bounds>> {
        let end = Position { created_at: range.until, id: None };
        let after = Position { created_at: range.since, id: None };
        let bounds = |number: usize| {
            let up_to = match (&self.cursors, standings.get(number)) {
                (None, _) => end.clone(),
                (Some(_), Some(Some(Standing { position: Some(position), .. }))) => {
                    if position.created_at < end.created_at { position.clone() } else { end.clone() }
                }
                (Some(_), _) => return None,
            };
            (up_to.created_at >= after.created_at).then(|| Bounds { after: after.clone(), up_to })
        };
        (0..self.parts.len()).map(bounds).collect()
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
        let sums = Sums { sketch, order: Order::default(), rows, records: 0, without_id: 0, pruned: 0 };
        let (keys, reading, window) = (self.keys.clone(), self.reading.clone(), self.window);
        let (keeps, ordered) = (self.subject.keeps, self.orders_ids());
        let see = move |sums: &mut Sums, span: usize, message: &BorrowedMessage<'_>| {
            let Some(seen) = reading.see(message) else { return };
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
            let lane = lane(keeps, partition, message, &keys, &seen);
            // What comes again after a kill is remembered by itself: however much it is, the sums still name what is missing.
            if !lane.is_some_and(|lane| sums.order.see(lane, Place::new(at, id, ordered), below)) {
                sums.sketch.add(key, -1);
            }
        };
        Ok(topic::read(&self.subject.cluster, &spans, self.watch, sums, see).await?)
    }

    /// Shows each row of the range that was passed, and counts them.
    async fn rows(&self, mut see: impl FnMut(usize, Timestamp, &str)) -> Result<u64, Error> {
        let mut rows = 0;
        for (part, (shape, bounds)) in self.subject.parts.iter().zip(&self.bounds).enumerate() {
            let Some(bounds) = bounds else { continue };
            let count = |at: Timestamp, id: &str| {
                rows += 1;
                if rows % 1_000 == 0 {
                    self.watch.seen.fetch_add(1_000, Ordering::Relaxed);
                }
                see(part, at, id);
            };
            range::each(self.session, shape, bounds, self.subject.indexed, count).await?;
        }
        Ok(rows)
    }

    fn expect(&self, spans: &[Span]) {
        self.watch.seen.store(0, Ordering::Relaxed);
        self.watch.total.store(spans.iter().map(Span::offsets).sum(), Ordering::Relaxed);
    }

    /// Whether ids can be compared here.
    fn orders_ids(&self) -> bool {
        let ids = self.subject.parts.first().map(|shape| shape.id_type);
        ids.is_some_and(|ids| ids != IdType::Text)
    }

    /// Reads both sides once more for the ids that differ; gives the topic's spans and how many records they had.
    async fn look(&self, candidates: &mut Candidates) -> Result<(Vec<Span>, u64), Error> {
        if candidates.values().any(|candidate| candidate.lacking) {
            let note = |part: usize, at: Timestamp, id: &str| {
                if let Some(candidate) = candidates.get_mut(&self.keys.of(id)) {
                    id.clone_into(&mut candidate.id);
                    candidate.part = part;
                    candidate.row = Some(at);
                    candidate.due += 1;
                }
            };
            self.rows(note).await?;
        }
        if self.subject.cursors.is_none() && candidates.values().any(|candidate| candidate.due > 0) {
            // A row that committed just now is still on its way, however old its created_at is.
            tokio::time::sleep(self.subject.grace).await;
        }
        let since = self.window.range.since.minus(CLOCKS_AT_WORST);
        let spans = topic::survey(&self.subject.cluster, &self.subject.topics, since).await?;
        self.expect(&spans);
        let (keys, reading) = (self.keys.clone(), self.reading.clone());
        let state = (std::mem::take(candidates), 0);
        let see = move |(candidates, records): &mut (Candidates, u64), span: usize, message: &BorrowedMessage<'_>| {
            *records += 1;
            let Some(seen) = reading.see(message) else { return };
            let Some(id) = &seen.id else { return };
            let Some(candidate) = candidates.get_mut(&keys.of(id)) else { return };
            found(candidate, id, &seen, u32::try_from(span).unwrap_or(u32::MAX), message.offset());
        };
        let (looked, records) = topic::read(&self.subject.cluster, &spans, self.watch, state, see).await?;
        *candidates = looked;
        Ok((spans, records))
    }

    /// Looks at each differing id by itself, and decides.
    async fn judge(
        &self,
        mut report: Report,
        candidates: Candidates,
        history: &History,
        standings: &[Option<Standing>],
        retained: &Retained,
        (spans, records): (Vec<Span>, u64),
    ) -> Result<Report, Error> {
        let candidates: Vec<Candidate> = candidates.into_values().filter(|one| !one.id.is_empty()).collect();
        let mut undecided: u64 = 0;
        for some in candidates.chunks(IDS) {
            let ids: Vec<&str> = some.iter().map(|candidate| candidate.id.as_str()).collect();
            let now = self.rows_of(&ids).await?;
            let known = match &self.subject.cursors {
                Some(cursors) => cursors.known(self.session, &ids).await?,
                None => HashMap::new(),
            };
            for candidate in some {
                let rows = now.get(candidate.id.as_str()).map_or(&[][..], Vec::as_slice);
                let mut evidence = self.evidence(candidate, rows);
                let at = candidate.row.unwrap_or(Timestamp::NEG_INFINITY);
                evidence.moved_back = history.moved_back(candidate.record.unwrap_or(at));
                let letter = known.get(&(candidate.id.clone(), at)).copied();
                let skipped = history.has_skipped(&candidate.id, at).then_some(Known::Skipped);
                evidence.known = letter.or(skipped).or_else(|| self.before_start(at, standings)).or(match retained {
                    Retained::After(cut) if at <= *cut => Some(Known::Retention),
                    _ => None,
                });
                let verdict = decide(&evidence);
                if let Some(known) = verdict.known {
                    *report.known.entry(known).or_default() += 1;
                }
                for kind in verdict.kinds {
                    undecided += u64::from(kind == Kind::NotInTopic || kind == Kind::NotDelivered);
                    *report.counts.entry(kind).or_default() += 1;
                    report.differences.push(self.difference(candidate, kind, rows, &spans));
                }
            }
        }
        if undecided > 0 {
            self.explainable(retained, &spans, records, undecided).await?;
        }
        Ok(report)
    }

    /// Rows of these ids as they are now. Texts that cannot be ids of this table have none.
    async fn rows_of<'b>(&self, ids: &[&'b str]) -> Result<HashMap<String, Vec<Timestamp>>, Error> {
        let Some(shape) = self.subject.parts.first() else { return Ok(HashMap::new()) };
        let possible: Vec<&'b str> = ids.iter().copied().filter(|id| can_be(shape.id_type, id)).collect();
        let mut found: HashMap<String, Vec<Timestamp>> = HashMap::new();
        for row in range::of_ids(self.session, shape, &possible).await? {
            found.entry(row.id.unwrap_or_default()).or_default().push(row.created_at);
        }
        Ok(found)
    }

    fn evidence(&self, candidate: &Candidate, rows: &[Timestamp]) -> Evidence {
        let due = rows.iter().filter(|at| self.window.has(**at)).count() as u64;
        Evidence {
            rows: rows.len() as u64,
            due: due.min(candidate.due),
            records: candidate.records,
            replayed: candidate.replayed,
            moved_back: 0,
            below: candidate.is_below(),
            known: None,
            // A publisher on trial has no cursor: what it did not publish it has lost, wherever it lost it.
            read: self.subject.cursors.is_none().then_some(false),
        }
    }

    fn difference(&self, candidate: &Candidate, kind: Kind, rows: &[Timestamp], spans: &[Span]) -> Difference {
        let record = candidate.last.and_then(|(partition, offset)| {
            let span = spans.get(usize::try_from(partition).ok()?)?;
            Some((span.topic.to_string(), span.partition, offset))
        });
        let created_at = candidate.row.or_else(|| rows.first().copied()).or(candidate.record);
        let cursor = self.subject.cursors.as_ref().and_then(|cursors| cursors.names.get(candidate.part).cloned());
        Difference { id: candidate.id.clone(), created_at, kind, record, cursor }
    }

    /// Whether the relay began after a row: what came before is not its to deliver.
    fn before_start(&self, at: Timestamp, standings: &[Option<Standing>]) -> Option<Known> {
        let began = match self.subject.cursors.as_ref()?.start {
            Start::Beginning => return None,
            Start::At(instant) => instant,
            Start::Now => standings.iter().flatten().map(|standing| standing.created_at).min()?,
        };
        (at < began).then_some(Known::BeforeStart)
    }

    /// Missing rows are reported only where nothing else can have removed their records.
    async fn explainable(&self, retained: &Retained, spans: &[Span], records: u64, missing: u64) -> Result<(), Error> {
        if let Retained::Nothing(topic, partition) = retained {
            let what = format!(
                "{missing} rows are not in topic {topic}, and whether retention has removed their records cannot be told: \
                 partition {partition} has none left"
            );
            return Err(
                Problem::new(what, "Look at a shorter time (--since), or keep records longer (retention.ms).").into()
            );
        }
        let removed = spans.iter().map(Span::offsets).sum::<u64>() > records || spans.iter().any(|span| span.low > 0);
        let mut topics: Vec<&str> = spans.iter().map(|span| &*span.topic).collect();
        topics.dedup();
        for topic in topics.into_iter().filter(|_| removed) {
            if topic::compacted(&self.subject.cluster, topic).await == Some(true) {
                let what = format!(
                    "{missing} rows are not in topic {topic}, and whether compaction has removed their records cannot be told: it \
                     has cleanup.policy=compact, which keeps the newest record of a key"
                );
                return Err(Problem::new(what, "Compare a topic that is not compacted.").into());
            }
        }
        Ok(())
    }

    /// Rows that are in the range, and not passed yet.
    async fn pending(&self, standings: &[Option<Standing>]) -> Result<u64, Error> {
        if self.subject.cursors.is_none() {
            return Ok(0);
        }
        let mut rows = 0;
        for (number, shape) in self.subject.parts.iter().enumerate() {
            let since = Position { created_at: self.window.range.since, id: None };
            let position = standings.get(number).and_then(Option::as_ref).and_then(|found| found.position.clone());
            let after = position.filter(|position| position.created_at >= since.created_at).unwrap_or(since);
            let up_to = Position { created_at: self.window.range.until, id: None };
            if after.created_at < up_to.created_at {
                rows += range::count(self.session, shape, &Bounds { after, up_to }, i64::MAX).await?;
            }
        }
        Ok(rows)
    }

    async fn finished(&self, mut report: Report, unjudged: u64, retained: &Retained) -> Result<Report, Error> {
        report
            .differences
            .sort_by(|one, other| (one.kind, one.created_at, &one.id).cmp(&(other.kind, other.created_at, &other.id)));
        report.table += report.pending;
        let lost = |kind| report.counts.get(&kind).copied().unwrap_or(0);
        if let Some(cursors) = &self.subject.cursors {
            let range = (report.since, report.until);
            let letters = cursors.dead_letters(self.session, range).await?;
            let left_out =
                report.known.iter().filter(|(known, _)| **known != Known::DeadLetter && **known != Known::Retention);
            let left_out = letters + left_out.map(|(_, count)| *count).sum::<u64>();
            report.delivered = report.delivered.saturating_sub(left_out);
            if letters > 0 {
                report.known.insert(Known::DeadLetter, letters);
            }
        } else {
            report.delivered = report.delivered.saturating_sub(lost(Kind::NotDelivered));
        }
        if unjudged > 0 {
            report
                .notes
                .push(format!("the order of {unjudged} records was not judged: too many keys, or too many came again"));
        }
        if report.without_id > 0 {
            report.notes.push(format!("{} records have no {}: they were left out", report.without_id, self.reading.id));
        }
        if let (Some(rows), Retained::After(first)) = (report.known.get(&Known::Retention), retained) {
            report
                .notes
                .push(format!("{rows} rows are older than what the topic still has: the range begins after them"));
            report.since = *first;
            report.table = report.table.saturating_sub(*rows);
            report.delivered = report.delivered.saturating_sub(*rows);
        }
        if !report.complete && report.counts.is_empty() {
            let what =
                "more differs by the sums than can be looked at one by one, and what was looked at is explained by now";
            return Err(Problem::new(what, "Compare a shorter time: --since, --until.").into());
        }
        if !report.complete {
            report
                .notes
                .push("there are more differences than can be looked at one by one: these are some of them".to_owned());
        }
        Ok(report)
    }
}

fn stamped(message: &BorrowedMessage<'_>) -> Option<Timestamp> {
    message.timestamp().to_millis().map(|millis| Timestamp::from_unix_micros(millis.saturating_mul(1_000)))
}

/// The lane of a record whose order is to be kept.
fn lane(keeps: Keeps, partition: u32, message: &BorrowedMessage<'_>, keys: &Keys, seen: &Seen<'_>) -> Option<Lane> {
    if seen.late || seen.created_at.is_none() {
        return None;
    }
    match keeps {
        Keeps::Nothing => None,
        Keeps::Partition => Some(Lane { partition, key: None }),
        Keeps::Key => Some(Lane { partition, key: message.key().map(|key| keys.lane(key)) }),
    }
}

fn found(candidate: &mut Candidate, id: &str, seen: &Seen<'_>, partition: u32, offset: i64) {
    if candidate.id.is_empty() {
        id.clone_into(&mut candidate.id);
    }
    candidate.record = seen.created_at.or(candidate.record);
    if seen.replayed {
        candidate.replayed += 1;
    } else {
        candidate.records += 1;
        candidate.saw(partition, offset);
    }
}

/// Whether a text can be an id of this type.
fn can_be(ids: IdType, id: &str) -> bool {
    match ids {
        IdType::SmallInt => id.parse::<i16>().is_ok(),
        IdType::Integer => id.parse::<i32>().is_ok(),
        IdType::BigInt => id.parse::<i64>().is_ok(),
        IdType::Uuid => id.len() == 36 && id.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit()),
        IdType::Text => !id.contains('\0'),
    }
}
