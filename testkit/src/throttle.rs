//! Paces the writers to what the SMS gateway takes: on a busy machine the demo then shows less, but nothing false.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The gateway's rate is over this much time.
const SPAN: Duration = Duration::from_secs(2);
/// What may wait must be sent within this: well below the time that delivery may take after the writers have ended.
const SENT_WITHIN: f64 = 2.0;
/// May wait in any case, so that the rate can be seen at all; also all that is sent on the slowest machine in time.
const LEAST: u64 = 20;

#[derive(Debug, Default)]
pub(super) struct Throttle {
    sent: VecDeque<(Instant, u64)>,
}

impl Throttle {
    /// Whether the writers must wait, given how many rows they have committed and how many the gateway has.
    pub(super) fn must_hold(&mut self, now: Instant, committed: u64, sent: u64) -> bool {
        self.sent.push_back((now, sent));
        while self.sent.len() > 2 && now - self.sent[1].0 >= SPAN {
            self.sent.pop_front();
        }
        let (since, before) = self.sent[0];
        let seconds = (now - since).as_secs_f64();
        let rate = if seconds > 0.0 { sent.saturating_sub(before) as f64 / seconds } else { 0.0 };
        committed.saturating_sub(sent) > LEAST.max((rate * SENT_WITHIN) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_wait_follows_the_gateways_rate() {
        let start = Instant::now();
        let at = |tenths: u64| start + Duration::from_millis(100 * tenths);
        let mut throttle = Throttle::default();
        assert!(!throttle.must_hold(at(0), 20, 0));
        assert!(throttle.must_hold(at(1), 21, 0), "nothing has been sent");
        assert!(!throttle.must_hold(at(10), 300, 100), "100 a second: 200 may wait");
        assert!(throttle.must_hold(at(11), 302, 101));
        assert!(throttle.must_hold(at(40), 201, 101), "the gateway has stopped");
    }
}
