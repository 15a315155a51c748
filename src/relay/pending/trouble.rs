//! What a desk does when the database or the receiver fails, and when they are well again.

use std::time::Duration;

use super::Desk;
use crate::cursor;
use crate::database::{Error, sqlstate};
use crate::pace::Backoff;
use crate::relay::report;
use crate::relay::turn::within;
use crate::sink::{Class, Failure};

impl Desk {
    /// The database said no.
    pub(super) async fn failed(&mut self, error: &Error) -> Duration {
        let meaning = sqlstate::meaning(error);
        let (code, hint) = (sqlstate::word(error), meaning.hint.replace("NAME", &self.config.name));
        let class = if meaning.cure == sqlstate::Cure::Halt { Class::Fatal } else { Class::Retry };
        let failure = Failure::of(class, &code, error.to_string(), hint);
        let pause = self.backoff.failed(fastrand::f64());
        tracing::warn!(cursor = self.config.name, code, %error, hint = failure.hint, ?pause, "cannot look for due work");
        match (&self.ready, class) {
            (Some(ready), Class::Fatal) => {
                let fingerprint = ready.fingerprint.clone();
                self.halt(&fingerprint, &failure, None).await;
            }
            // A connection that breaks once is no news for the status.
            _ if self.backoff.failures() > 1 => {
                self.reported = true;
                let error = report::error(&failure, None);
                report::write(&self.engine, &self.config.name, &error, None, None).await;
            }
            _ => {}
        }
        // The table may be another than it was when its statements were made.
        if meaning.cure == sqlstate::Cure::Recheck || error.state().is_some_and(|state| state.code().starts_with("22"))
        {
            self.ready = None;
        }
        pause
    }

    /// The relay stands still until somebody mends it.
    pub(super) async fn halt(&mut self, fingerprint: &str, failure: &Failure, key: Option<&str>) {
        tracing::error!(
            cursor = self.config.name,
            key,
            code = failure.code,
            error = failure.message,
            hint = failure.hint,
            "relay halted"
        );
        self.reported = true;
        let error = report::error(failure, key);
        report::write(&self.engine, &self.config.name, &error, Some(fingerprint), Some(false)).await;
    }

    /// The receiver has accepted something, or the database is there again.
    pub(super) async fn recovered(&mut self) {
        self.outages = 0;
        self.backoff = Backoff::new();
        if !std::mem::take(&mut self.reported) {
            return;
        }
        let cleared =
            async { cursor::clear(self.engine.probe.session().await?.as_ref(), &self.config.name, None).await };
        if let Err(error) = within(&self.engine, cleared).await {
            tracing::warn!(cursor = self.config.name, %error, "cannot record that the relay is well again");
            self.reported = true;
        }
    }
}
