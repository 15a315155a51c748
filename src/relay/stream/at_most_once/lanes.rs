//! A turn under `at_most_once` whose messages are sent side by side (`[relay.turn] in_flight`).
//!
//! The rows that it may send are written to `outbox.ahead`, durably, with a token that names them, before any is sent; the position stays.
//! So none of them is sent again, whatever ends in between, and no row between them is passed that was not sent. When sending has ended,
//! one transaction takes those back that provably were not sent, lists those as unknown that may have been accepted, takes the token
//! away, and moves the position over all rows that are accepted or listed without a gap.

use std::time::{Duration, Instant};

use super::flight::Flight;
use crate::cursor::ahead::{AheadSettlement, Beyond};
use crate::cursor::unknown::Unknown;
use crate::cursor::{LockedCursor, Reserved};
use crate::late::Opened;
use crate::position::Position;
use crate::relay::engine::circuit;
use crate::relay::engine::deadline::within;
use crate::relay::stream::outcome::{TurnError, TurnOutcome};
use crate::relay::stream::read_ahead::{Ahead, Chain};
use crate::relay::stream::relayed::Relayed;
use crate::relay::stream::report;
use crate::relay::stream::side_by_side::{Doubtful, SideBySide};
use crate::relay::stream::turn::Turn;
use crate::relay::stream::turn::publish::Taken;
use crate::relay::stream::turn_buffer::TurnBuffer;
use crate::relay::stream::withheld::Parked;
use crate::sink::{Failure, Mode};
use crate::source::fetch::{FetchError, Fetched};

/// For each message that may be on its way, so many rows are reserved: while one is slow, others follow.
const RESERVED: usize = 4;

/// How long until the next turn where no message of one was accepted or refused; lanes wait by themselves.
const PAUSE: Duration = Duration::from_millis(100);

/// What a turn has read.
struct Read<'a> {
    side: SideBySide<'a>,
    kept: TurnBuffer,
    parked: Parked<'a>,
    fetched: Result<Fetched, FetchError>,
    opened: Option<Opened>,
    taken: Taken,
}

impl<'a> Turn<'a> {
    /// Runs the turn from the lock on.
    pub(in crate::relay) async fn at_most_once_lanes(
        &mut self,
        cursor: LockedCursor,
        chain: &mut Chain,
        deadline: Instant,
    ) -> Result<TurnOutcome, TurnError> {
        let opened = match self.read_lanes(&cursor, chain, deadline).await? {
            Ok(read) => return self.send_lanes(cursor, read, deadline).await,
            Err(opened) => opened,
        };
        self.advance(cursor, Relayed::late(opened)).await
    }

    /// Reads the rows; only what it has seen before them where the turn is for rows that came late.
    async fn read_lanes(
        &mut self,
        cursor: &LockedCursor,
        chain: &mut Chain,
        deadline: Instant,
    ) -> Result<Result<Read<'a>, Option<Opened>>, TurnError> {
        let ready = self.ready;
        chain.ahead = None;
        // Of a single lane no more is read than may be sent.
        let until = self.last_start(deadline);
        let sends = self.reserves(until);
        let window = if ready.lane.is_some() { ready.config.lanes.window } else { sends };
        let reads = window.max(self.reads_at_least());
        let begun = Instant::now();
        let Ahead { mut rows, mut end, most, growth, .. } =
            chain.reading(self.engine, ready, self.learned, cursor, self.sighting, reads);
        let opened = self.opened(cursor, &mut rows, deadline).await?;
        self.learned.opened(opened.as_ref());
        if opened.as_ref().is_some_and(|opened| self.is_for_late_rows(opened)) {
            return Ok(Err(opened));
        }
        // Nothing is handed over later: a process that was stopped would go on when it wakes, while another has the lock.
        let mode = Mode { until: Some(until), ..self.side_mode(deadline) };
        let recorder = self.lane_recorder(cursor, None).idle();
        let wanted = self.row_limit(0);
        let mut side = SideBySide::new(ready, mode, recorder, until, (sends, sends), self.engine.stop.clone()).once();
        let (mut kept, mut parked) = (TurnBuffer::default(), self.passing(None));
        let (closed, late) = (cursor.closed(), FetchError::Late(ready.config.turn.deadline));
        let fetched = tokio::select! {
            biased;
            () = closed.cancelled() => return Err(self.lock_lost(0)),
            () = tokio::time::sleep_until(deadline.into()) => return Err(late.into()),
            () = self.engine.cut.cancelled() => return Err(late.into()),
            ((), fetched) = async { tokio::join!(side.read(&mut kept, &mut parked, rows), end.wait()) } => fetched,
        };
        if let Ok(fetched) = &fetched
            && fetched.rows > 0
        {
            self.learned.sizes = fetched.sizes;
        }
        self.timings.fetch = begun.elapsed();
        let taken = Taken { rows: 0, wanted, most, spent: false, growth, cut: false };
        Ok(Ok(Read { side, kept, parked, fetched, opened, taken }))
    }

    /// How many rows this turn reserves: no more than it may begin until then, because a crash lists them all. While the circuit is open, one
    /// message tries the receiver.
    fn reserves(&self, until: Instant) -> usize {
        let ready = self.ready;
        if ready.status.circuit_open() {
            return 1;
        }
        let at_once = if ready.lane.is_some() { ready.config.lanes.in_flight } else { 1 };
        let at_once = at_once.min(ready.sink.at_once().unwrap_or(usize::MAX));
        let left = until.saturating_duration_since(Instant::now()).as_micros();
        let by_rate = ready.sink.min_interval().map(|interval| left / interval.as_micros().max(1) + 1);
        let by_rate = by_rate.map_or(usize::MAX, |rows| usize::try_from(rows).unwrap_or(usize::MAX));
        at_once.saturating_mul(RESERVED).min(super::MOST).min(by_rate).min(ready.config.turn.rows).max(1)
    }

    /// Reserves rows, sends them, and writes how that ended.
    async fn send_lanes(
        &mut self,
        cursor: LockedCursor,
        read: Read<'_>,
        deadline: Instant,
    ) -> Result<TurnOutcome, TurnError> {
        let Read { mut side, mut kept, mut parked, fetched, opened, taken } = read;
        let fetched = match fetched {
            // The rows before it go first.
            Err(error) if error.is_of_a_row() && parked.handed_over() > 0 => {
                Ok(Fetched { rows: parked.handed_over(), more: true, ..Fetched::default() })
            }
            Err(error) if !matches!(error, FetchError::Unreadable(_)) => return Err(error.into()),
            fetched => fetched,
        };
        let reserved_rows = side.reserve(&kept);
        if reserved_rows.is_empty() {
            let has_ahead = cursor.has_ahead;
            let relayed = self.ended_lanes(side, (kept, parked), (Some(fetched), false), taken)?;
            let beyond = relayed.beyond.filter(|beyond| has_ahead || !beyond.rows.is_empty());
            return self.advance(cursor, Relayed { opened, beyond, ..relayed }).await;
        }
        if let Err(failure) = self.reach(&kept, &reserved_rows).await {
            return self.advance(cursor, Relayed::nothing(failure)).await;
        }
        if side.is_late() {
            return Err(FetchError::Late(self.ready.config.turn.deadline).into());
        }
        let Some(reserved) = self.reserve_lanes(cursor, &reserved_rows, deadline).await? else {
            return Ok(TurnOutcome::Busy);
        };
        let begun = Instant::now();
        let (closed, may_send) = (reserved.closed(), self.may_send(&reserved).await?);
        if may_send {
            tokio::select! {
                biased;
                () = closed.cancelled() => return Err(self.lock_lost(side.lanes.all_acknowledged())),
                () = tokio::time::sleep_until(deadline.into()) => {}
                () = self.engine.cut.cancelled() => {}
                () = side.send_reserved(&mut kept, &mut parked) => {}
            }
        }
        let late = may_send && side.has_sent_none();
        side.cut(&kept);
        self.timings.publish = begun.elapsed();
        let not_sent = side.not_sent(reserved_rows);
        let doubtful = std::mem::take(&mut side.doubtful);
        side.doubtful.clone_from(&doubtful);
        let taken = Taken { rows: side.lanes.all_acknowledged(), cut: side.ran_out_of_time(), ..taken };
        let relayed = self.ended_lanes(side, (kept, parked), (Some(fetched), false), taken)?;
        let relayed = Relayed { opened, unknown: doubtful.len(), ..relayed };
        let outcome = self.settle_lanes(reserved, (&not_sent, &doubtful), relayed).await?;
        if late && is_quiet(&outcome) {
            // It is reported, and the next attempt is made after a pause.
            return Err(FetchError::Late(self.ready.config.turn.deadline).into());
        }
        Ok(if may_send { outcome } else { TurnOutcome::Early(circuit::PROBED_BY_ANOTHER) })
    }

    /// A receiver that cannot be reached is found out before anything is in doubt.
    async fn reach(&self, kept: &TurnBuffer, rows: &[(usize, Position)]) -> Result<(), Failure> {
        let first = rows.first().and_then(|(row, _)| kept.locate(*row));
        let Some((batch, at)) = first else { return Ok(()) };
        self.ready.sink.reach(&batch.message(at), self.engine.call_deadline).await
    }

    /// Writes the rows to `outbox.ahead`, with a token that names them; the position stays.
    async fn reserve_lanes(
        &mut self,
        cursor: LockedCursor,
        rows: &[(usize, Position)],
        deadline: Instant,
    ) -> Result<Option<Reserved>, TurnError> {
        let rows: Vec<Position> = rows.iter().map(|(_, position)| position.clone()).collect();
        let before = cursor.position.clone();
        let beyond = Beyond { rows: rows.clone(), is_last: false };
        let flight = Flight { rows: &rows, end: before.as_ref(), opened: None, letter: None, beyond: Some(&beyond) };
        self.reserve(cursor, flight, deadline).await
    }

    async fn settle_lanes(
        &mut self,
        reserved: Reserved,
        (not_sent, doubtful): (&[Position], &[Doubtful]),
        relayed: Relayed,
    ) -> Result<TurnOutcome, TurnError> {
        let (acknowledged, token) = (relayed.sent(), reserved.token().to_owned());
        let unknown: Vec<Unknown<'_>> = doubtful
            .iter()
            .filter_map(|Doubtful { position, failure, .. }| {
                let id = position.id.as_deref()?;
                Some(Unknown { id, created_at: position.created_at, error: report::error(failure, Some(id)) })
            })
            .collect();
        let settlement = AheadSettlement { not_sent, unknown: &unknown, by: &self.engine.replica };
        let settling = reserved.settle_ahead(&self.ready.identity, &settlement);
        let not_settled = |source| TurnError::NotSettled { acknowledged, token: token.clone(), source };
        let cursor = within(self.engine, settling).await.map_err(not_settled)?;
        let outcome = self.advance(cursor, relayed).await.map_err(|error| match error {
            TurnError::NotAdvanced { source, .. } => not_settled(source),
            error => error,
        })?;
        self.tell_doubtful(doubtful);
        Ok(match doubtful.last().filter(|_| acknowledged == 0 && is_quiet(&outcome)) {
            None => outcome,
            // Nothing was accepted: the relay says so, and its lanes make their pauses.
            Some(Doubtful { position, failure, .. }) => {
                let failure = Failure { ambiguous: false, ..failure.clone() };
                TurnOutcome::LaneWaits { rows: 0, pause: PAUSE, failure, message_id: position.id.clone() }
            }
        })
    }

    fn tell_doubtful(&self, doubtful: &[Doubtful]) {
        let cursor = &self.ready.config.name;
        for Doubtful { position, failure, .. } in doubtful {
            let (message_id, code, error) = (position.id.as_deref(), &failure.code, &failure.message);
            tracing::warn!(
                cursor,
                message_id,
                code,
                error,
                hint = failure.hint,
                "row passed: its outcome is not known"
            );
        }
        self.ready.metrics.abandoned(u64::try_from(doubtful.len()).unwrap_or(0));
    }
}

/// Whether a turn has nothing to tell but what it has sent.
fn is_quiet(outcome: &TurnOutcome) -> bool {
    matches!(outcome, TurnOutcome::Relayed { .. } | TurnOutcome::Idle)
}
