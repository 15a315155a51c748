//! What a desk measures from time to time, whoever has claimed the rows.

use std::time::Instant;

use super::ready::Ready;
use super::{Desk, look};
use crate::cursor;
use crate::database::{Error, Session};
use crate::relay::engine::intervals::SAMPLE;

impl Desk {
    pub(super) async fn sample(&mut self, ready: &Ready, session: &Session) -> Result<(), Error> {
        if self.sampled.is_some_and(|sampled| sampled.elapsed() < SAMPLE) {
            return Ok(());
        }
        self.sampled = Some(Instant::now());
        let lag = look::backlog(session, &ready.due, &ready.config.name).await?;
        let rows = u64::try_from(lag.rows).unwrap_or(0);
        ready.metrics.set_lag(lag.age, rows, lag.observed_at);
        ready.numbers.set_due(rows);
        let letters = cursor::dead_letter::open(session, &ready.config.name).await?;
        ready.metrics.set_dead_letters(u64::try_from(letters).unwrap_or(0));
        let unknown = cursor::unknown::count(session, &ready.config.name).await?;
        ready.metrics.set_unknown_outcomes(unknown.unsigned_abs());
        Ok(())
    }
}
