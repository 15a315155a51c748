//! The look for the turn that follows at once, or after a moment.

use std::time::Duration;

use super::Worker;
use crate::database::Error;
use crate::relay::engine::Engine;
use crate::relay::stream::outcome::TurnError;
use crate::relay::stream::read_ahead::{Ahead, ReadPlan};
use crate::source::fetch::FetchError;
use crate::source::watcher::Sighting;

/// A task that stays for rows that come in a moment waits no longer than this: it hears no hint.
pub(super) const SOON: Duration = Duration::from_millis(20);

impl Worker<'_> {
    /// Looks for the turn that follows at once.
    pub(super) async fn look_again(&mut self) -> Result<Option<Sighting>, TurnError> {
        Ok(Some(match &mut self.chain.ahead {
            Some(ahead) => bounded(self.engine, ahead.sighting()).await?,
            None => self.engine.watcher.scan(&self.ready.shape).await?,
        }))
    }

    /// After a moment, reads on behind the last turn; none when nothing comes, or when others need the connections more.
    pub(super) async fn look_soon(&mut self) -> Result<Option<Sighting>, TurnError> {
        loop {
            tokio::select! {
                () = tokio::time::sleep(self.pause().min(SOON)) => {}
                () = self.engine.stop.cancelled() => return Ok(None),
            }
            let is_wanted = !self.engine.is_crowded() && !self.ready.is_superseded();
            let Some(after) = self.chain.stands_at.clone().filter(|_| is_wanted) else { return Ok(None) };
            self.chain.permits = self.engine.permits(false).await?;
            let (most, learned) = (self.learned.row_limit, self.learned);
            let swept = self.chain.swept.clone();
            let plan = ReadPlan { after: Some(after), swept, known: None, most, sighting: None, learned };
            let ahead = self.chain.ahead.insert(Ahead::start(self.engine, self.ready, plan));
            let sighting = bounded(self.engine, ahead.sighting()).await?;
            self.seen = sighting.clone();
            // The lock costs a transaction id: it is taken on trust only where rows have come again and again.
            if self.patience.trusts() || bounded(self.engine, ahead.found()).await? {
                return Ok(Some(sighting));
            }
            self.chain.ahead = None;
            self.chain.permits.clear();
            if !self.patience.missed() {
                return Ok(None);
            }
        }
    }
}

/// Bounds waiting for a reading by this process's clock: a server that hangs keeps its connection alive and never answers.
async fn bounded<T>(engine: &Engine, reading: impl Future<Output = Result<T, FetchError>>) -> Result<T, TurnError> {
    let limit = engine.call_deadline;
    let late = |_| TurnError::from(Error::Timeout(limit));
    Ok(tokio::time::timeout(limit, reading).await.map_err(late)??)
}
