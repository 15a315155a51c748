//! Each differing id by itself: both sides are read once more for them, the database is asked about each, and it is decided.

use std::collections::HashMap;
use std::time::Duration;

use rdkafka::message::{BorrowedMessage, Message as _};

use super::candidates::{Candidate, Candidates};
use super::compare::Work;
use super::decide::{Evidence, Kind, Known, decide};
use super::history::{self, IDS};
use super::operations::{GivenUp, Row, Said, parts};
use super::record::Seen;
use super::report::{Difference, Report};
use super::retained::Retained;
use super::topic::{self, Span};
use super::{Error, Problem, rows_now};
use crate::position::Timestamp;
use crate::source::range::FoundRow;

/// Records that are missed are looked for from this long before: so much may clocks differ at worst.
const CLOCKS_AT_WORST: Duration = Duration::from_secs(3_600);
/// What is found besides the ids themselves when both sides are read once more.
pub(super) struct Looked {
    spans: Vec<Span>,
    /// How many records they have.
    records: u64,
    /// What was known before the topic was read.
    before: HashMap<(String, Timestamp), Known>,
}

impl Work<'_> {
    /// Reads both sides once more for the ids that differ.
    pub(super) async fn look(&self, candidates: &mut Candidates) -> Result<Looked, Error> {
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
        // Before the topic: what is in flight now, or a letter that is sent meanwhile, may come after its end.
        let before = self.known(candidates).await?;
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
        Ok(Looked { spans, records, before })
    }

    /// What is in flight, and what is known of rows that the topic lacks.
    async fn known(&self, candidates: &Candidates) -> Result<HashMap<(String, Timestamp), Known>, Error> {
        let Some(cursors) = &self.subject.cursors else { return Ok(HashMap::new()) };
        let lacking = candidates.values().filter(|candidate| candidate.due > 0 && !candidate.id.is_empty());
        let rows: Vec<(usize, &str)> = lacking.map(|candidate| (candidate.part, candidate.id.as_str())).collect();
        // First what is to come late: a row that has come by now is a dead letter, or its record is in the topic, which is read afterwards.
        let mut known = cursors.to_come(self.session, &self.subject.parts, &rows).await?;
        known.extend(cursors.in_flight(self.session).await?);
        let ids: Vec<&str> = rows.iter().map(|(_, id)| *id).collect();
        for some in ids.chunks(IDS) {
            known.extend(cursors.known(self.session, some).await?);
        }
        Ok(known)
    }

    /// Looks at each differing id by itself, and decides.
    pub(super) async fn judge(
        &self,
        mut report: Report,
        candidates: Candidates,
        Looked { spans, records, before }: Looked,
    ) -> Result<Report, Error> {
        let candidates: Vec<Candidate> = candidates.into_values().filter(|one| !one.id.is_empty()).collect();
        let mut undecided: u64 = 0;
        for some in candidates.chunks(IDS) {
            let ids: Vec<&str> = some.iter().map(|candidate| candidate.id.as_str()).collect();
            let now = match self.subject.parts.first() {
                Some(shape) => rows_now::of_ids(self.session, shape, &ids).await?,
                None => HashMap::new(),
            };
            let known = match &self.subject.cursors {
                Some(cursors) => cursors.known(self.session, &ids).await?,
                None => HashMap::new(),
            };
            let missed = some.iter().filter(|candidate| candidate.is_missed());
            let missed: Vec<&str> = missed.map(|candidate| candidate.id.as_str()).collect();
            let given_up = history::given_up(self.session, &self.history, &missed).await?;
            for candidate in some {
                let rows = now.get(candidate.id.as_str()).map_or(&[][..], Vec::as_slice);
                let mut evidence = self.evidence(candidate, rows);
                let at = candidate.row.unwrap_or(Timestamp::NEG_INFINITY);
                let shard = self.shard_of(rows);
                evidence.moved_back = self.history.moved_back(candidate.record.unwrap_or(at), shard.as_deref());
                let said = candidate.row.map_or(Said::Nothing, |at| {
                    let row = (candidate.id.clone(), at);
                    let letter = known.get(&row).or_else(|| before.get(&row)).copied();
                    letter.map_or_else(|| self.passed_over(candidate, at, given_up.get(&row).copied()), Said::Passed)
                });
                let (reason, withheld) = match said {
                    Said::Passed(known) => (Some(known), None),
                    Said::Unclear(why) => (None, Some(why)),
                    Said::Due | Said::Nothing => (None, None),
                };
                evidence.known = reason;
                let verdict = decide(&evidence);
                if let Some(known) = verdict.known {
                    report.explain(known, &candidate.id, at);
                }
                for kind in verdict.kinds {
                    undecided += u64::from(kind == Kind::NotInTopic || kind == Kind::NotDelivered);
                    *report.counts.entry(kind).or_default() += 1;
                    let found = self.difference(candidate, kind, rows, &spans);
                    report.differences.push(Difference { withheld, ..found });
                }
            }
        }
        if undecided > 0 {
            self.explainable(&spans, records, undecided).await?;
        }
        Ok(report)
    }

    /// What tells the cursor of an id from those of other shards; none where that is not known, or not one.
    fn shard_of(&self, rows: &[FoundRow]) -> Option<String> {
        if self.subject.parts.first().is_none_or(|part| part.shard.is_none()) {
            return Some(String::new());
        }
        let shard = rows.first()?.shard?;
        rows.iter().all(|row| row.shard == Some(shard)).then(|| format!("#{shard}"))
    }

    fn evidence(&self, candidate: &Candidate, rows: &[FoundRow]) -> Evidence {
        let due = rows.iter().filter(|row| self.window.has(row.created_at)).count() as u64;
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

    fn difference(&self, candidate: &Candidate, kind: Kind, rows: &[FoundRow], spans: &[Span]) -> Difference {
        let record = candidate.last.and_then(|(partition, offset)| {
            let span = spans.get(usize::try_from(partition).ok()?)?;
            Some((span.topic.to_string(), span.partition, offset))
        });
        let created_at = candidate.row.or_else(|| rows.first().map(|row| row.created_at)).or(candidate.record);
        let cursor = self.subject.cursors.as_ref().and_then(|cursors| cursors.names.get(candidate.part).cloned());
        let row = rows.iter().find(|row| candidate.row == Some(row.created_at));
        let transaction = row.and_then(|row| row.transaction.clone());
        Difference { id: candidate.id.clone(), created_at, kind, record, cursor, transaction, withheld: None }
    }

    /// Whether a row was to be sent and is still in the topic, as far as that can be told; `given_up` is the note of its dead letter.
    fn passed_over(&self, candidate: &Candidate, at: Timestamp, given_up: Option<&GivenUp>) -> Said {
        let retention = match &self.retained {
            Retained::After(cut) if at <= *cut => Said::Passed(Known::Retention),
            _ => Said::Nothing,
        };
        let (Some(cursors), Some(shape)) = (&self.subject.cursors, self.subject.parts.first()) else {
            return retention;
        };
        let row = Row { id: &candidate.id, at, ids: shape.id_type, given_up };
        let (_, shard) = parts(cursors.names.get(candidate.part).map_or("", String::as_str));
        let said = self.history.says(row, shard);
        if matches!(said, Said::Passed(_)) || retention == Said::Nothing { said } else { retention }
    }

    /// Missing rows are reported only where nothing else can have removed their records.
    async fn explainable(&self, spans: &[Span], records: u64, missing: u64) -> Result<(), Error> {
        if let Retained::Nothing(topic, partition) = &self.retained {
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

    /// What follows for the whole.
    pub(super) async fn finished(&self, mut report: Report, unjudged: u64) -> Result<Report, Error> {
        report
            .differences
            .sort_by(|one, other| (one.kind, one.created_at, &one.id).cmp(&(other.kind, other.created_at, &other.id)));
        report.table += report.pending;
        let lost = |kind| report.counts.get(&kind).copied().unwrap_or(0);
        if let Some(cursors) = &self.subject.cursors {
            let range = (report.since, report.until);
            report.to_come.sort();
            let (letters, parked) = cursors.dead_letters(self.session, range, &report.to_come).await?;
            let counted = [Known::DeadLetter, Known::Parked, Known::Retention];
            let left_out = report.known.iter().filter(|(known, _)| !counted.contains(*known));
            let left_out = letters + parked + left_out.map(|(_, count)| *count).sum::<u64>();
            report.delivered = report.delivered.saturating_sub(left_out);
            let waiting = [(Known::DeadLetter, letters), (Known::Parked, parked)];
            report.known.extend(waiting.into_iter().filter(|(_, rows)| *rows > 0));
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
        if let (Some(rows), Retained::After(first)) = (report.known.get(&Known::Retention), &self.retained) {
            report
                .notes
                .push(format!("{rows} rows are older than what the topic still has: the range begins after them"));
            report.since = *first;
            report.table = report.table.saturating_sub(*rows);
            report.delivered = report.delivered.saturating_sub(*rows);
        }
        let (withheld, to_come) = (report.withheld(), report.note_to_come());
        report.notes.extend(withheld.into_iter().chain(to_come));
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
