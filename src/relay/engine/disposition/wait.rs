//! How a job waits for its next attempt.

use std::time::Duration;

use crate::pace;
use crate::sink::Failure;

/// The first pause of a job that failed; it doubles.
const FIRST: Duration = Duration::from_secs(1);
/// The longest.
const LONGEST: Duration = Duration::from_secs(5 * 60);

/// How a job waits for its next attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::relay) struct Wait {
    /// The attempt counts as one of the job's.
    pub(in crate::relay) counts: bool,
    /// The pause is as long as after so many attempts; none: there is none.
    pub(in crate::relay) after: Option<i32>,
    /// The pause outlasts any attempt: a receiver that is only slow must be done with the last before it is asked for it.
    pub(in crate::relay) outlasts: bool,
}

impl Wait {
    /// No pause, and no attempt was made.
    pub(super) const AT_ONCE: Self = Self { counts: false, after: None, outlasts: false };

    pub(super) const fn after(attempts: i32) -> Self {
        Self { counts: true, after: Some(attempts), outlasts: false }
    }

    /// How many attempts this one counts as.
    pub(in crate::relay) fn attempts(self) -> i32 {
        i32::from(self.counts)
    }

    /// How long it waits; `attempt` is the longest that one can take.
    pub(in crate::relay) fn pause(self, failure: &Failure, attempt: Duration) -> Duration {
        let pause = self.after.map_or(Duration::ZERO, |attempts| pause(attempts, failure));
        if self.outlasts { pause.max(attempt) } else { pause }
    }
}

/// How long a job waits after one more failure: longer each time, with jitter, and as long as the receiver asks for.
pub(in crate::relay) fn pause(attempts: i32, failure: &Failure) -> Duration {
    let failures = u32::try_from(attempts).unwrap_or(0);
    pace::backoff(FIRST, LONGEST, failures, fastrand::f64()).max(failure.retry_after.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::Class;

    #[test]
    fn pause_of_a_job_doubles_and_honors_the_receiver() {
        let failure = Failure::of(Class::Retry, "x", "", "");
        for (attempts, whole) in [(-1, 1), (0, 1), (3, 8), (8, 256), (9, 300), (1_000, 300)] {
            let (least, most) = (Duration::from_millis(whole * 500), Duration::from_secs(whole));
            assert!((least..=most).contains(&pause(attempts, &failure)), "{attempts}");
        }
        let asked = Failure { retry_after: Some(Duration::from_secs(900)), ..failure };
        assert_eq!(pause(0, &asked), Duration::from_secs(900));
    }
}
