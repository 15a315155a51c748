//! Requests that take too long to be rendered. That is done in the claim's transaction: one of them would end each claim that it is in, and
//! as the oldest it would be in each.

use std::time::Duration;

use super::prepare::PreparedRequests;
use crate::database::{Error, sqlstate};
use crate::jobs::ledger;
use crate::relay::engine::Engine;
use crate::relay::engine::deadline::within;
use crate::relay::engine::disposition::pause;
use crate::relay::engine::report;
use crate::sink::{Class, Failure};

const SLOW: &str = "Let the sink's templates do less with the parameters of this request, or raise turn.deadline: the limit is 3/5 of the \
    longest one. It is retried; `outbox-relay request discard ID` gives it up.";

/// The request of a claim that took longest to be rendered.
#[derive(Debug)]
pub(super) struct Rendering {
    pub(super) id: String,
    /// How often it has failed before.
    pub(super) attempts: i32,
    pub(super) took: Duration,
    /// The claim had no other.
    pub(super) alone: bool,
}

impl Rendering {
    /// Whether it is why a claim failed with this error, each of whose calls may take as long as `limit`. What takes less than all of that
    /// may pass with fewer others, so that it is blamed only where there is none.
    pub(super) fn is_to_blame(&self, error: &Error, limit: Duration) -> bool {
        self.took >= limit || self.alone && self.took >= limit / 2 && sqlstate::is_too_slow(error)
    }

    fn failure(&self, limit: Duration) -> Failure {
        let (took, limit) = (self.took.as_secs_f64(), limit.as_secs_f64());
        let message =
            format!("rendering it took {took:.1} s: reading, rendering and storing may take {limit:.1} s altogether");
        Failure::of(Class::Retry, "rendering_too_slow", message, SLOW)
    }
}

/// Lets a request wait that is to blame for a failed claim, longer each time; others pass it.
pub(super) async fn put_off(engine: &Engine, prepared: &PreparedRequests, slow: &Rendering) -> Result<(), Error> {
    let failure = slow.failure(engine.call_deadline);
    let (reason, pause) = (report::error(&failure, None), pause(slow.attempts, &failure));
    let waiting = async { ledger::put_off(engine.probe.session().await?.as_ref(), &slow.id, &reason, pause).await };
    match within(engine, waiting).await {
        Ok(true) => {}
        Ok(false) => return Ok(()),
        // Another replica is rendering it, or the server has not ended the claim that failed: the next claim tells.
        Err(error) if sqlstate::is_lock_timeout(&error) => return Ok(()),
        Err(error) => return Err(error),
    }
    engine.progress(&prepared.config.name, |progress| progress.failed += 1);
    tracing::warn!(
        cursor = prepared.config.name,
        id = slow.id,
        code = failure.code,
        error = failure.message,
        hint = failure.hint,
        attempt = slow.attempts + 1,
        "request put off"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_several_is_blamed_only_if_it_would_fail_alone() {
        let limit = Duration::from_secs(10);
        let is_blamed = |seconds, alone, error: Error| {
            let (id, took) = (String::new(), Duration::from_secs(seconds));
            Rendering { id, attempts: 0, took, alone }.is_to_blame(&error, limit)
        };
        let late = || Error::Timeout(limit);
        assert!(is_blamed(10, false, late()) && is_blamed(5, true, late()));
        assert!(!is_blamed(9, false, late()) && !is_blamed(4, true, late()));
        assert!(!is_blamed(5, true, Error::Vanished("mails".to_owned())), "something else was wrong");
    }
}
