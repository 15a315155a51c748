//! The claims of rows whose outcome cannot be recorded yet.
//!
//! Promise: while this replica reaches the database, no other sends such a row. One that another has taken is logged.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;

use super::Desk;
use super::ready::Ready;
use super::task::Attempt;
use crate::cursor::claims::Settlement;
use crate::database::Error;
use crate::relay::Config;
use crate::relay::engine::Slot;
use crate::relay::engine::deadline::within;
use crate::source::pending::Key;

/// The pause between two renewals: several fit into a claim's time.
pub(super) fn renewal(config: &Config) -> Duration {
    config.turn.lock_kill() / 4
}

impl Desk {
    /// Renews the claims of everything that is still to be recorded, once the oldest renewal is old enough.
    pub(super) async fn renew(&mut self, ready: &Ready) -> Result<(), Error> {
        let pause = renewal(&ready.config);
        if self.unsettled.iter().all(|attempt| attempt.renewed.elapsed() < pause) {
            return Ok(());
        }
        let asked = Instant::now();
        match self.keep(ready).await {
            Ok(kept) => {
                let (kept, lost): (Vec<_>, Vec<_>) =
                    std::mem::take(&mut self.unsettled).into_iter().partition(|a| kept.contains(&a.task.key));
                self.unsettled = kept;
                self.unsettled.iter_mut().for_each(|attempt| attempt.renewed = asked);
                lost.iter().for_each(|attempt| self.taken(attempt, attempt.is_acknowledged()));
                Ok(())
            }
            Err(error) => {
                self.expire(ready);
                Err(error)
            }
        }
    }

    /// Renews all claims in one transaction; the keys of those that are still this replica's.
    async fn keep(&self, ready: &Ready) -> Result<HashSet<Key>, Error> {
        let Slot { lock, reader, permits } = self.engine.slot(false).await?;
        drop(reader);
        let lease = ready.config.turn.lock_kill();
        let keeping = async {
            let settlement = Settlement::begin(lock, false).await?;
            let all = self.unsettled.iter().map(|attempt| settlement.keep(attempt.task.claim(), lease));
            let kept = try_join_all(all).await?;
            settlement.commit().await?;
            Ok(kept)
        };
        let kept = within(&self.engine, keeping).await;
        drop(permits);
        let keys = self.unsettled.iter().map(|attempt| attempt.task.key.clone());
        Ok(keys.zip(kept?).filter_map(|(key, kept)| kept.then_some(key)).collect())
    }

    /// Forgets what was claimed so long ago that another replica decides about it.
    fn expire(&mut self, ready: &Ready) {
        let lease = ready.config.turn.lock_kill() * 2;
        let (expired, kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.unsettled).into_iter().partition(|attempt| attempt.renewed.elapsed() >= lease);
        self.unsettled = kept;
        if !expired.is_empty() {
            let (cursor, rows) = (&self.config.name, expired.len());
            let sent = expired.iter().filter(|attempt| attempt.is_acknowledged()).count();
            tracing::error!(cursor, rows, sent, "cannot record the outcomes of rows: their claims have expired");
            self.engine.unrecorded.lost(cursor, sent);
        }
    }

    /// Logs a row whose claim is another replica's before its outcome was recorded; `lost` when it never will be.
    pub(super) fn taken(&self, attempt: &Attempt, lost: bool) {
        let (cursor, key) = (&self.config.name, attempt.task.key.message_id());
        let sent = attempt.is_acknowledged();
        self.engine.unrecorded.lost(cursor, usize::from(lost && !attempt.perhaps_recorded));
        if attempt.perhaps_recorded {
            tracing::warn!(
                cursor,
                key,
                sent,
                "recorded by a commit that was not answered, or taken by another replica"
            );
        } else {
            tracing::error!(
                cursor,
                key,
                sent,
                "claim lost before the outcome was recorded; another replica sends the row"
            );
        }
    }
}
