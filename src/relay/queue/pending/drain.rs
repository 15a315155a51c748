//! The end of a desk.

use std::time::Duration;

use super::Desk;
use crate::relay::engine::drain::Drain;

impl Desk {
    /// What has begun ends, or is cut with the grace period; what became of it is recorded as it comes. What cannot be
    /// recorded is logged.
    pub(super) async fn drain(&mut self) {
        let mut drain = Drain::new(self.config.turn.lock_kill());
        while !self.sending.is_empty() || !self.unsettled.is_empty() {
            if let Err(error) = self.settle().await {
                self.setbacks.cannot_record(&error);
            }
            let over = drain.is_over(&self.engine);
            if self.sending.is_empty() && over {
                break;
            }
            self.wait_for_answers(drain.pause()).await;
        }
        let unrecorded = self.unsettled.iter().filter(|attempt| attempt.is_acknowledged()).count();
        self.engine.unrecorded.lost(&self.config.name, unrecorded);
        if let Some(ready) = self.checked.last()
            && let Err(error) = self.give_up_marking(&ready, false).await
        {
            tracing::warn!(cursor = self.config.name, %error, "rows that were sent are not marked: they are sent again");
        }
    }

    async fn wait_for_answers(&mut self, pause: Duration) {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            Some(done) = self.sending.join_next() => self.ended(done),
        }
        while let Some(done) = self.sending.try_join_next() {
            self.ended(done);
        }
    }
}
