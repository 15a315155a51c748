//! The end of a turn: what follows from how publishing ended, and the advance that records it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::Turn;
use crate::audit::{Move, Recorded, element};
use crate::cursor::ahead::Beyond;
use crate::cursor::dead_letter::DeadLetter;
use crate::cursor::{Advance, ErrorReport, LockedCursor};
use crate::database::Error;
use crate::late::{Opened, Swept};
use crate::position::{Position, Timestamp};
use crate::relay::Guarantee;
use crate::relay::engine::deadline::within;
use crate::relay::engine::disposition::{ForCircuit, at_stop};
use crate::relay::stream::after_publish::{self, AfterPublish};
use crate::relay::stream::outcome::{TurnError, TurnOutcome};
use crate::relay::stream::relayed::Relayed;
use crate::relay::stream::report;
use crate::relay::stream::shards;
use crate::relay::stream::withheld::Parks;
use crate::sink::Failure;

/// A row that the sink would refuse, how many published rows come before it, and why.
type RefusedLetter<'a> = (DeadLetter<'a>, usize, &'a Failure);

impl Turn<'_> {
    /// Advances over the acknowledged prefix, and over a poison row after it when that is the policy.
    pub(in crate::relay) async fn advance(
        &mut self,
        cursor: LockedCursor,
        relayed: Relayed,
    ) -> Result<TurnOutcome, TurnError> {
        let relayed = self.behind_its_key(relayed).await?;
        let acknowledged = relayed.published.acknowledged;
        let message_id = relayed.message_id(relayed.at.unwrap_or(acknowledged));
        let verdict = after_publish::verdict(self.ready, &relayed);
        let lane_waits = relayed.lane_waits.filter(|_| matches!(verdict, AfterPublish::Retry(_)));
        let (verdict, park) = self.key_to_park(verdict, &relayed).await?;
        let verdict = after_publish::copied(self.engine, self.ready, verdict).await;
        let verdict = self.late_halt(relayed.opened.as_ref()).map_or(verdict, AfterPublish::Halt);
        if lane_waits.is_none() {
            self.report(&verdict, message_id.as_deref()).await;
        }
        let dead = match &verdict {
            AfterPublish::Bury(failure, letter) => {
                Some((letter.as_ref(), report::error(failure, message_id.as_deref())))
            }
            AfterPublish::Done | AfterPublish::Search(_) | AfterPublish::Retry(_) | AfterPublish::Halt(_) => None,
        };
        let passed = acknowledged + usize::from(dead.is_some());
        let refused = self.refused_letters(&relayed, passed);
        // In the order of the rows: letters that are sent again come in that of their numbers.
        let letters = refused.iter().map(|(letter, _, why)| (letter, report::error(why, Some(&letter.message_id))));
        let mut letters: Vec<_> = letters.collect();
        let at = refused.partition_point(|(_, before, _)| *before <= acknowledged);
        letters.splice(at..at, dead);
        // What was done half-way in this database is never committed, whatever rows were passed before it.
        let in_database = self.ready.config.guarantee == Guarantee::InDatabase;
        let half_way = in_database && passed == 0 && relayed.published.stopped.is_some();
        let end = match &verdict {
            AfterPublish::Done if relayed.read_nothing() => self.end_without_rows(&cursor),
            _ => relayed.end(passed).filter(|_| !half_way),
        };
        let end = end.or_else(|| self.stays_for_late_rows(&cursor, &relayed));
        if end.is_some() {
            let parked =
                Parks { key: park.as_deref().map(|key| (at, key)), rows: relayed.withheld.written(self.ready, passed) };
            let beyond = self.beyond(&cursor, &relayed, end.as_ref());
            let recorded = self.recorded(&cursor, &relayed, passed, end.as_ref());
            let rows = (letters.as_slice(), parked, beyond.as_ref());
            let seen = (relayed.opened.as_ref(), &recorded);
            self.commit(cursor, end.as_ref(), seen, rows, acknowledged).await?;
            self.tell_refused(&refused);
            let limit = self.learned.letters;
            self.learned.letters = if letters.is_empty() { limit.none() } else { limit.passed() };
            self.stands_at = end;
        } else {
            (self.stands_at, self.swept) = (cursor.position.clone(), cursor.swept.clone());
            self.release(cursor, &relayed).await?;
        }
        self.learned.passed(passed);
        if !self.ready.config.lanes.are_used() {
            self.delivered = relayed.instants(acknowledged);
        }
        Ok(self.outcome(verdict, &relayed, (message_id, lane_waits)))
    }

    /// The rows that are passed and that the sink would refuse, as dead letters, and why.
    fn refused_letters<'b>(&self, relayed: &'b Relayed, passed: usize) -> Vec<RefusedLetter<'b>> {
        let rows = relayed.withheld.refused(passed);
        rows.map(|(row, n, failure)| (after_publish::letter(self.ready, &row, failure), n, failure)).collect()
    }

    /// They stand in the database: a line for each kind of reason, with the first row of it.
    fn tell_refused(&mut self, refused: &[RefusedLetter<'_>]) {
        let mut kinds: BTreeMap<&str, (&str, &Failure, usize)> = BTreeMap::new();
        for (letter, _, failure) in refused {
            kinds.entry(&failure.code).or_insert((&letter.message_id, failure, 0)).2 += 1;
        }
        for (message_id, failure, rows) in kinds.into_values() {
            tracing::error!(
                cursor = self.ready.config.name,
                rows,
                message_id,
                code = failure.code,
                error = failure.message,
                hint = failure.hint,
                "rows dead-lettered, from this one on"
            );
        }
        self.refused = refused.iter().map(|(.., failure)| (*failure).clone()).collect();
    }

    /// While the lock is held: no other replica must try the same message before it can see a halt or an open circuit.
    async fn report(&self, verdict: &AfterPublish<'_>, message_id: Option<&str>) {
        match verdict {
            AfterPublish::Halt(failure) => report::halt(self.engine, self.ready, failure, message_id).await,
            AfterPublish::Retry(failure) if self.ready.status.circuit_open() => {
                let outage = at_stop(failure).circuit == ForCircuit::Outage;
                report::retry(self.engine, self.ready, failure, message_id, Some(outage)).await;
            }
            AfterPublish::Done | AfterPublish::Search(_) | AfterPublish::Bury(..) | AfterPublish::Retry(_) => {}
        }
    }

    /// Writes the position, and a dead letter with it, and commits.
    async fn commit(
        &mut self,
        cursor: LockedCursor,
        position: Option<&Position>,
        (opened, recorded): (Option<&Opened>, &Recorded),
        (dead, parked, beyond): (&[(&DeadLetter<'_>, ErrorReport<'_>)], Parks<'_>, Option<&Beyond>),
        acknowledged: usize,
    ) -> Result<(), TurnError> {
        let shape = Arc::clone(&self.ready.shape);
        let snapshot = opened.map(|opened| opened.snapshot.as_str());
        // Below a position that is still to come, rows are passed as they come.
        let clock = self.sighting.horizon.observed_at;
        let sweep = shape.sweep.filter(|_| position.is_none_or(|position| position.created_at <= clock));
        let swept = snapshot.map_or_else(
            || cursor.swept.clone(),
            |snapshot| sweep.map(|column| Swept { snapshot: snapshot.to_owned(), column }),
        );
        let late = self.late_letters(opened);
        let unjudged = self.unjudged(&cursor, opened);
        let advance = Advance {
            position,
            observed_at: self.sighting.horizon.observed_at,
            snapshot,
            sweep,
            relations: unjudged.as_ref().map_or((shape.root, &shape.descendants), |(root, known)| (*root, known)),
            seek_applied: cursor.seek_applied,
            identity: &self.ready.identity,
            partitions: self.partitions,
            rests_on: &self.rests_on,
            durable: self.ready.config.waits_for_disk() || !dead.is_empty() || late.is_some() || parked.rows.is_some(),
            dead,
            park: parked.key,
            parked: parked.rows,
            beyond,
            late,
            audit: Some(recorded),
            by: &self.engine.replica,
        };
        let letters = advance.dead.len();
        match within(self.engine, cursor.advance(advance)).await {
            Ok((place, [advance, commit])) => {
                (self.timings.advance, self.timings.commit) = (advance, commit);
                (self.place, self.swept) = (Some(place), swept);
                self.recorded_late(opened);
                Ok(())
            }
            Err(source) => {
                self.learned.letters = self.learned.letters.not_advanced(letters);
                Err(self.not_advanced(acknowledged, source))
            }
        }
    }

    /// What is recorded of the rows that it passes, of which `passed` are kept.
    fn recorded(&self, cursor: &LockedCursor, relayed: &Relayed, passed: usize, end: Option<&Position>) -> Recorded {
        let sums = if self.ready.audits() { relayed.sums(passed) } else { None };
        let now = self.sighting.horizon.observed_at;
        let (from, reads) = (cursor.position.as_ref(), element(&self.ready.shape.reads()));
        let rows = passed + relayed.withheld.passed(passed);
        end.map_or_else(Recorded::default, |to| {
            Recorded::of(cursor.audit.clone(), Move { from, to, reads, passed: sums.as_ref(), rows, now })
        })
    }

    /// What is remembered beyond the position from now on.
    fn beyond(&self, cursor: &LockedCursor, relayed: &Relayed, end: Option<&Position>) -> Option<Beyond> {
        let beyond = relayed.beyond.clone().or_else(|| cursor.has_ahead.then(Beyond::default))?;
        let passed = |at: Timestamp, id: &str| {
            end.is_some_and(|end| at < end.created_at || at == end.created_at && end.id.as_deref() == Some(id))
        };
        let is_last = beyond.rows.is_empty() && self.ahead.iter().all(|(at, id)| passed(*at, id));
        Some(Beyond { is_last, ..beyond })
    }

    /// The position stays; what was acknowledged beyond it is remembered.
    async fn release(&self, cursor: LockedCursor, relayed: &Relayed) -> Result<(), TurnError> {
        match relayed.beyond.as_ref().filter(|beyond| !beyond.rows.is_empty()) {
            Some(beyond) => {
                let durable = self.ready.config.waits_for_disk();
                let left = within(self.engine, cursor.leave_ahead(beyond, durable, &self.engine.replica)).await;
                left.map_err(|source| self.not_advanced(beyond.rows.len(), source))
            }
            None => Ok(within(self.engine, cursor.release()).await?),
        }
    }

    fn outcome(
        &mut self,
        verdict: AfterPublish<'_>,
        relayed: &Relayed,
        (message_id, lane_waits): (Option<String>, Option<Duration>),
    ) -> TurnOutcome {
        let (rows, suspects) = (relayed.sent(), relayed.published.suspects);
        match verdict {
            AfterPublish::Search(failure) => {
                self.learned.suspects = suspects;
                TurnOutcome::Searching { rows, suspects, failure }
            }
            AfterPublish::Bury(failure, letter) => TurnOutcome::Buried { rows, failure, message_id: letter.message_id },
            AfterPublish::Retry(failure) | AfterPublish::Halt(failure) => match lane_waits {
                Some(pause) => TurnOutcome::LaneWaits { rows, pause, failure, message_id },
                None => TurnOutcome::Stalled { rows, failure, message_id },
            },
            AfterPublish::Done if relayed.fetched.rows == 0 && self.late == 0 && !relayed.looks_on() => {
                TurnOutcome::Idle
            }
            AfterPublish::Done => {
                let prefix = relayed.published.acknowledged;
                let passed = prefix + relayed.withheld.passed(prefix);
                let more = relayed.fetched.more || passed < relayed.fetched.rows || self.late > 0;
                TurnOutcome::Relayed { rows, more }
            }
        }
    }

    /// Where a turn that has read no row leaves the cursor: at the table's newest row for an idle shard.
    fn end_without_rows(&mut self, cursor: &LockedCursor) -> Option<Position> {
        let follow = self.follow.take();
        let position = cursor.position.as_ref();
        shards::follow_to(follow, position, self.sighting.horizon.at).or_else(|| self.stays(cursor))
    }

    /// The relations that the cursor goes on knowing, where no reading has judged those of the table.
    pub(in crate::relay) fn unjudged(
        &self,
        cursor: &LockedCursor,
        opened: Option<&Opened>,
    ) -> Option<(u32, BTreeSet<u32>)> {
        cursor.relations.as_ref().filter(|_| self.judged_in_part || opened.is_none()).cloned()
    }

    /// The position itself, when the relations that the cursor knows are not those that were just read: they are recorded, so
    /// that what was new to it is looked for once. And when it does not know yet from when on rows come late.
    fn stays(&self, cursor: &LockedCursor) -> Option<Position> {
        let shape = &self.ready.shape;
        let news = cursor.relations.as_ref().is_some_and(|(_, known)| *known != shape.descendants);
        let unswept = shape.sweep.is_some() && cursor.swept.as_ref().map(|swept| swept.column) != shape.sweep;
        let clock = self.sighting.horizon.observed_at;
        cursor.position.clone().filter(|position| news || unswept && position.created_at <= clock)
    }

    /// The lock's connection ended after so many rows were acknowledged.
    pub(in crate::relay) fn lock_lost(&self, acknowledged: usize) -> TurnError {
        // What was changed in this database is undone with the transaction.
        let in_database = self.ready.config.guarantee == Guarantee::InDatabase;
        TurnError::LockLost { acknowledged: if in_database { 0 } else { acknowledged } }
    }

    /// The commit failed, or its outcome is unknown.
    pub(in crate::relay) fn not_advanced(&self, acknowledged: usize, source: Error) -> TurnError {
        match self.ready.config.guarantee {
            // Nothing will come again: what was changed is undone with the advance, or stands with it.
            Guarantee::InDatabase => source.into(),
            Guarantee::AtLeastOnce | Guarantee::AtMostOnce | Guarantee::Deduplicated => {
                TurnError::NotAdvanced { acknowledged, source }
            }
        }
    }
}
