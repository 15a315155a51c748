//! Rows are passed, durably, before they are sent; and a commit that is not answered is asked for.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::audit::{Move, Recorded, element};
use crate::cursor::ahead::Beyond;
use crate::cursor::{self, Advance, Commit, LockedCursor, Reservation, Reserved};
use crate::database::Error;
use crate::late::Opened;
use crate::position::Position;
use crate::relay::engine::deadline::within;
use crate::relay::stream::outcome::TurnError;
use crate::relay::stream::turn::Turn;

/// How often the fate of a commit is asked for while its session has not noticed yet that nobody is there.
const PAUSE: Duration = Duration::from_millis(20);

/// What a reservation is about.
pub(super) struct Flight<'a> {
    pub(super) rows: &'a [Position],
    /// Where the position stands behind it.
    pub(super) end: Option<&'a Position>,
    /// What the reading saw before its first row.
    pub(super) opened: Option<&'a Opened>,
    pub(super) letter: Option<i64>,
    /// They are remembered beyond the position, which does not pass them yet.
    pub(super) beyond: Option<&'a Beyond>,
}

impl Turn<'_> {
    /// Passes the rows and locks the cursor again. None when somebody else has taken them for lost meanwhile.
    pub(super) async fn reserve(
        &mut self,
        cursor: LockedCursor,
        flight: Flight<'_>,
        deadline: Instant,
    ) -> Result<Option<Reserved>, TurnError> {
        let begun = Instant::now();
        let token = format!("{:032x}", fastrand::u128(..));
        let (shape, unjudged) = (Arc::clone(&self.ready.shape), self.unjudged(&cursor, flight.opened));
        let recorded = self.unrecorded(&cursor, &flight);
        let advance = Advance {
            park: None,
            parked: None,
            beyond: flight.beyond,
            position: flight.end,
            observed_at: self.sighting.horizon.observed_at,
            snapshot: flight.opened.map(|opened| opened.snapshot.as_str()),
            sweep: self.ready.shape.sweep,
            late: self.late_letters(flight.opened),
            audit: Some(&recorded),
            relations: unjudged.as_ref().map_or((shape.root, &shape.descendants), |(root, known)| (*root, known)),
            seek_applied: cursor.seek_applied,
            identity: &self.ready.identity,
            partitions: self.partitions,
            rests_on: &self.rests_on,
            dead: &[],
            by: &self.engine.replica,
            durable: true,
        };
        let reservation = Reservation { advance, token: &token, rows: flight.rows, letter: flight.letter };
        let reserving = within(self.engine, cursor.reserve(&reservation)).await?;
        let xid = reserving.xid().to_owned();
        let reserved = match within(self.engine, reserving.commit()).await {
            Ok(reserved) => reserved,
            Err(error) => self.resolve(&xid, &token, error, deadline).await?,
        };
        self.timings.advance = begun.elapsed();
        self.recorded_late(flight.opened);
        Ok(reserved)
    }

    /// Which of the rows are sent is known only later, so that none is recorded: it is said that this turn has passed them.
    fn unrecorded(&self, cursor: &LockedCursor, flight: &Flight<'_>) -> Recorded {
        let open = cursor.audit.clone();
        let Some(to) = flight.end else { return Recorded { open, ..Recorded::default() } };
        let (from, reads) = (cursor.position.as_ref(), element(&self.ready.shape.reads()));
        let (rows, now) = (flight.rows.len(), self.sighting.horizon.observed_at);
        Recorded::of(open, Move { from, to, reads, passed: None, rows, now })
    }

    /// The commit was not answered: nothing is sent unless it took place, and nobody else has the cursor.
    async fn resolve(
        &self,
        xid: &str,
        token: &str,
        error: Error,
        deadline: Instant,
    ) -> Result<Option<Reserved>, TurnError> {
        tracing::warn!(cursor = self.ready.config.name, %error, xid, "a commit was not answered; querying its status");
        let asking = async {
            loop {
                let asked = within(self.engine, async {
                    cursor::fate_of(self.engine.probe.session().await?.as_ref(), xid).await
                });
                match asked.await {
                    Ok(Commit::InProgress) => {}
                    Ok(fate) => return fate,
                    Err(error) => tracing::debug!(%error, "cannot query the status of a commit"),
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        match tokio::time::timeout_at(deadline.into(), asking).await {
            Ok(Commit::Committed) => {
                let loan = self.engine.connection().await?;
                Ok(within(self.engine, Reserved::again(loan, &self.ready.config.name, token)).await?)
            }
            // Begun again by the next turn, whose lock tells what is true: a token that stands there is recorded first.
            Ok(Commit::Aborted | Commit::Unknown | Commit::InProgress) | Err(_) => Err(error.into()),
        }
    }
}
