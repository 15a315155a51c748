//! What a turn does about rows that became visible at or below its cursor's position.
//!
//! Promise: they are written down in the transaction that stores the snapshot which sees them, each once, and no snapshot is
//! stored without. From then on they are letters: delivered like redriven ones, under the cursor's lock and in order among
//! themselves, or waiting for an operator.

use std::borrow::Cow;

use crate::cursor::dead_letter::LateRows;
use crate::cursor::{CursorChange, ErrorReport, LockedCursor, Sweeping};
use crate::database::{Error, Fragile};
use crate::late::{LateRow, Opened};
use crate::position::Position;
use crate::relay::engine::deadline::within;
use crate::relay::stream::outcome::{TurnError, TurnOutcome};
use crate::relay::stream::read_ahead;
use crate::relay::stream::relayed::Relayed;
use crate::relay::stream::report;
use crate::relay::stream::turn::Turn;
use crate::relay::{Config, Guarantee, OnLateRow};
use crate::sink::{Class, Failure};
use crate::source::fetch::{self, FetchError, Request};
use crate::source::span;
use crate::visible::visible;

/// The code of the letters and of the halt.
pub(in crate::relay) const CODE: &str = "late_row";

/// How many are named in the log and in a halt.
const NAMED: usize = 5;

/// Of a letter that is delivered by itself.
const DELIVERED: ErrorReport<'static> = ErrorReport {
    class: Class::Retry.as_str(),
    code: CODE,
    message: "The row became visible behind the position",
    hint: "Nothing: it is delivered late, with the mark `late`.",
    message_id: None,
};

/// Of a letter that waits.
const WAITING: ErrorReport<'static> = ErrorReport {
    class: Class::Fatal.as_str(),
    hint: "Deliver it late by `outbox-relay dead-letter redrive`, or discard it; then `outbox-relay cursor resume`.",
    ..DELIVERED
};

/// What was seen before a message is skipped.
struct NextOfSkip {
    /// A snapshot that sees no row that was not looked for.
    snapshot: String,
    is_next: bool,
}

impl Turn<'_> {
    /// Whether the turn publishes nothing, and is over when they are written down: a policy wants that, or there may be more, and
    /// the cursor must stand where it stands until all are known.
    pub(in crate::relay) fn is_for_late_rows(&self, opened: &Opened) -> bool {
        if opened.part {
            let (cursor, snapshot) = (&self.ready.config.name, &opened.snapshot);
            tracing::info!(cursor, snapshot, "much was written since late rows were last looked for; looking in parts");
        }
        !opened.is_whole() || self.halts_at(opened)
    }

    fn halts_at(&self, opened: &Opened) -> bool {
        !opened.late.is_empty() && self.ready.config.on_late_row == OnLateRow::Halt
    }

    /// The halt, when that is the policy and all of them are known.
    pub(in crate::relay) fn late_halt(&self, opened: Option<&Opened>) -> Option<Failure> {
        let opened = opened.filter(|opened| self.halts_at(opened) && !opened.more)?;
        Some(halt(&self.ready.config.name, &opened.late))
    }

    /// Carries an operator's change out. What came late below the old position is found and written down first: it is not what the
    /// operator passes. Where the relay is to halt at late rows, it halts at these, too.
    pub(in crate::relay) async fn change(
        &mut self,
        cursor: LockedCursor,
        change: &CursorChange,
    ) -> Result<TurnOutcome, TurnError> {
        let opened = match Box::pin(self.sweep(&cursor)).await {
            Ok(opened) => opened,
            Err(error) => {
                let cursor = &self.ready.config.name;
                tracing::warn!(cursor, %error, "the position is moved without a look for rows that came late below it");
                None
            }
        };
        self.learned.opened(opened.as_ref());
        if opened.as_ref().is_some_and(|opened| !opened.is_whole()) {
            // No row was read: what the table is made of, and what the position rests on, is still to be judged.
            (self.judged_in_part, self.rests_on) = (true, cursor.rests_on.clone());
            return self.advance(cursor, Relayed::late(opened)).await;
        }
        let late = self.late_letters(opened.as_ref());
        let (mut change, mut snapshot) = (Cow::Borrowed(change), opened.as_ref().map(|opened| opened.snapshot.clone()));
        if self.ready.shape.passes_over_after().is_some() && change.is_skip_at(cursor.position.as_ref()) {
            let seen = self.next_of_skip(&cursor, &change).await?;
            if seen.is_next {
                snapshot = snapshot.or(Some(seen.snapshot));
            } else {
                // As if the cursor had moved.
                change.to_mut().to.clone_from(&cursor.position);
            }
        }
        let sweeping = Sweeping { column: self.ready.shape.sweep, snapshot: snapshot.as_deref(), late: late.as_ref() };
        let clock = self.sighting.horizon.observed_at;
        if let Some(failure) = self.late_halt(opened.as_ref()) {
            report::halt(self.engine, self.ready, &failure, None).await;
        }
        let moving = cursor.carry_out(&change, clock, sweeping, &self.engine.replica);
        let position = within(self.engine, moving).await?;
        self.recorded_late(opened.as_ref());
        Ok(TurnOutcome::Moved { number: change.number, position })
    }

    /// Whether the message that is to be skipped still comes next. A transaction that was passed over may have committed rows before it
    /// since the operator looked, and they would be skipped, too.
    async fn next_of_skip(&self, cursor: &LockedCursor, change: &CursorChange) -> Result<NextOfSkip, TurnError> {
        let looking = async {
            let session = self.engine.probe.session().await?;
            cursor.server().same_as(&session.server)?;
            // First the snapshot: what it sees is seen by the look after it, too.
            let snapshot = session.query_one("SELECT pg_catalog.pg_current_snapshot()::text", &[]).await?.try_get(0)?;
            let way = (cursor.position.as_ref(), change.to.as_ref());
            let first = span::between(&session, &self.ready.shape, way, 2).await?.first;
            Ok::<_, Error>(NextOfSkip { snapshot, is_next: first.is_none() || first == change.to })
        };
        let seen = within(self.engine, looking).await?;
        if !seen.is_next {
            let (cursor, to) = (&self.ready.config.name, change.to.as_ref().map(ToString::to_string));
            tracing::warn!(
                cursor,
                to,
                "rows have come before the message that is to be skipped: nothing is passed over"
            );
        }
        Ok(seen)
    }

    /// Reads nothing but late rows; none where none are looked for.
    async fn sweep(&self, cursor: &LockedCursor) -> Result<Option<Opened>, TurnError> {
        let swept = cursor.swept.as_ref().filter(|swept| Some(swept.column) == self.ready.shape.sweep);
        if swept.is_none() || cursor.position.is_none() || cursor.foreign {
            return Ok(None);
        }
        let reader = Fragile::new(within(self.engine, self.engine.connection()).await?);
        // A partition that is away has no part in that.
        let there = &self.ready.shape.descendants;
        let known =
            cursor.relations.as_ref().map(|(root, known)| (*root, known.intersection(there).copied().collect()));
        let (from, known) = ((cursor.position.as_ref(), swept), known.as_ref());
        let safe = (self.sighting.horizon.at, &*self.sighting.server);
        let request = Request { alone: None, ..read_ahead::request(self.ready, &self.learned, from, known, safe, 0) };
        let (mut giver, mut taker) = fetch::handoff(usize::MAX);
        let limit = self.ready.config.turn.deadline;
        let reading = tokio::time::timeout(limit, fetch::fetch(&reader, request, &mut giver));
        let fetched = reading.await.map_err(|_| FetchError::Late(limit))??;
        within(self.engine, fetch::end(reader, &fetched)).await?;
        drop(giver);
        Ok(taker.opened().await.cloned())
    }

    /// Where the cursor stays to write them down, or the newer snapshot alone, when the turn does not move it. What was done
    /// half-way in this database is never committed.
    pub(in crate::relay) fn stays_for_late_rows(&self, cursor: &LockedCursor, relayed: &Relayed) -> Option<Position> {
        let half_way = self.ready.config.guarantee == Guarantee::InDatabase && relayed.published.stopped.is_some();
        let opened = relayed.opened.as_ref();
        let news = opened.is_some_and(|opened| opened.aged || opened.part || !opened.late.is_empty());
        cursor.position.clone().filter(|_| news && !half_way)
    }

    /// As they are written down.
    pub(in crate::relay) fn late_letters<'b>(&self, opened: Option<&'b Opened>) -> Option<LateRows<'b>> {
        Some(letters(&self.ready.config, &opened.filter(|opened| !opened.late.is_empty())?.late))
    }

    /// They have been written down.
    pub(in crate::relay) fn recorded_late(&mut self, opened: Option<&Opened>) {
        let Some(late) = opened.map(|opened| &opened.late).filter(|late| !late.is_empty()) else { return };
        self.late += late.len();
        tell(&self.ready.config.name, late);
    }
}

/// The halt at these rows, which have been written down.
pub(in crate::relay) fn halt(cursor: &str, late: &[LateRow]) -> Failure {
    let (rows, named) = (late.len(), named(late));
    let what = if rows == 1 { "1 row has".to_owned() } else { format!("{rows} rows have") };
    let message = format!("{what} become visible behind the position: {named}");
    let hint = format!(
        "They are dead letters now. Deliver them late, in order among themselves, by `outbox-relay dead-letter redrive --cursor {cursor}`, or give \
         them up by `outbox-relay dead-letter discard --cursor {cursor}`; then `outbox-relay cursor resume {cursor}`."
    );
    Failure::of(Class::Fatal, CODE, message, hint)
}

/// As they are written down.
pub(in crate::relay) fn letters<'a>(config: &Config, rows: &'a [LateRow]) -> LateRows<'a> {
    let halts = config.on_late_row == OnLateRow::Halt;
    LateRows {
        rows,
        source: config.source.table().to_string(),
        sink: config.sink.kind(),
        target: config.sink.target(),
        halts,
        again: true,
        error: if halts { WAITING } else { DELIVERED },
    }
}

/// Logs that they have been written down.
pub(in crate::relay) fn tell(cursor: &str, late: &[LateRow]) {
    let oldest = late.first().map(|row| row.position.created_at.to_string());
    tracing::warn!(
        cursor,
        rows = late.len(),
        ids = named(late),
        oldest,
        "rows have become visible behind the position: they come late"
    );
}

/// The first of their ids, in words.
fn named(late: &[LateRow]) -> String {
    let ids: Vec<&str> = late.iter().take(NAMED).filter_map(|row| row.position.id.as_deref()).collect();
    let more = late.len().saturating_sub(NAMED);
    let ids = visible(&ids.join(", "));
    if more == 0 { ids } else { format!("{ids} and {more} more") }
}
