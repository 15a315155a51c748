//! The partitions of `outbox.message`: made ahead, and dropped when they are old enough.

use super::super::{Kept, OldRecords, messages};
use super::Pass;
use crate::database::Error;

/// So often one pass tries to put back a partition that is on its way out and came to be needed.
const RETURNS: i32 = 5;

impl Pass<'_> {
    /// Makes days ahead, also where nothing is pruned, and drops those that are not needed.
    pub(super) async fn messages(&self) -> Result<(), Error> {
        let table = messages::table(&self.session).await?;
        if table.partitioned {
            match messages::extend(&self.session, self.config.messages_ahead).await {
                Ok(Some(made)) => tracing::info!(made, "partitions of outbox.message made"),
                Ok(None) => {}
                Err(error) => self.failed_messages(error)?,
            }
        }
        let Some(seconds) = self.config.messages.map(|time| time.as_secs_f64()) else { return Ok(()) };
        if !table.partitioned {
            self.found().push(messages::plain());
            return Ok(());
        }
        if let Some(beginner) = messages::beginner(&self.session, self.relays).await? {
            self.found().push(beginner);
            return Ok(());
        }
        for attempt in 1.. {
            let kept = self.partitions(table.owned, seconds).await?;
            // A turn may wait for the lock that a return has, and the return for the turn's snapshot: one of them gives up.
            if attempt == RETURNS || self.stop.is_cancelled() || !messages::missing(&self.session, seconds).await? {
                self.found().extend(kept);
                break;
            }
        }
        Ok(())
    }

    /// Drops the partitions that are old enough and not needed any more, and puts back those that came to be needed; gives
    /// those that stay.
    async fn partitions(&self, owned: bool, seconds: f64) -> Result<Vec<OldRecords>, Error> {
        if owned {
            return self.owned_partitions(seconds).await;
        }
        while !self.stop.is_cancelled() {
            self.limit().await?;
            match messages::prune(&self.session, seconds).await {
                Ok(Some(partition)) if partition.rows > 0 => self.found().push(partition),
                Ok(Some(partition)) => return Ok(vec![partition]),
                Ok(None) => return Ok(Vec::new()),
                Err(error) => return self.failed(error).map(|kept| vec![messages::whole(kept)]),
            }
        }
        Ok(Vec::new())
    }

    /// The same as the table's owner: no writer waits.
    async fn owned_partitions(&self, seconds: f64) -> Result<Vec<OldRecords>, Error> {
        self.session.batch_execute("SET lock_timeout = '1s'").await?;
        let mut stay = Vec::new();
        for old in messages::old(&self.session, seconds).await? {
            if self.stop.is_cancelled() {
                break;
            }
            self.limit().await?;
            match messages::drop_concurrently(&self.session, &old).await {
                Ok(None) => self.found().push(messages::gone(old)),
                Ok(Some(held_by)) => stay.push(messages::stays(old, Kept::some(1, &held_by))),
                Err(error) => {
                    let kept = Kept { rows: Some(1), ..self.failed(error)? };
                    stay.push(messages::stays(old, Some(kept)));
                }
            }
        }
        Ok(stay)
    }

    fn failed_messages(&self, error: Error) -> Result<(), Error> {
        let kept = self.failed(error)?;
        self.found().push(messages::whole(kept));
        Ok(())
    }
}
