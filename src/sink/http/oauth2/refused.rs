//! Tokens that a receiver has refused although it had accepted them.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use reqwest::header::HeaderValue;
use tokio::time::Instant;

/// A token that is refused so soon after another one is not to blame.
const SOON: Duration = Duration::from_secs(60);

/// The last one, and when.
#[derive(Debug, Default)]
pub(super) struct Refused(Mutex<Option<(HeaderValue, Instant)>>);

impl Refused {
    /// Notes a token; whether another one was refused shortly before, so that this one was given because of that. Requests that were on
    /// their way with one token are refused together.
    pub(super) fn again(&self, token: &HeaderValue, now: Instant) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((same, _)) if same == token => false,
            other => {
                let soon = other.as_ref().is_some_and(|(_, at)| now.duration_since(*at) < SOON);
                *last = Some((token.clone(), now));
                soon
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_token_is_refused_again_within_a_minute_and_the_same_one_is_not() {
        let now = Instant::now();
        let (refused, [a, b, c]) = (Refused::default(), ["a", "b", "c"].map(HeaderValue::from_static));
        assert_eq!([&a, &a, &b, &b, &c].map(|token| refused.again(token, now)), [false, false, true, false, true]);
        assert!(!refused.again(&a, now + SOON), "long after");
    }
}
