//! What a client has complained of.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use super::classify;

/// The client's last complaint about the cluster as a whole. A refused log-in or certificate is followed by lost connections and by
/// all brokers being down, in any order, and says more than they do.
#[derive(Debug, Default)]
pub(super) struct Complaint(Mutex<Option<(KafkaError, String)>>);

impl Complaint {
    fn lock(&self) -> MutexGuard<'_, Option<(KafkaError, String)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn hear(&self, error: KafkaError, reason: &str) {
        let mut told = self.lock();
        let says_less = error.rdkafka_error_code() == Some(RDKafkaErrorCode::AllBrokersDown);
        if !told.as_ref().is_some_and(|(before, _)| says_less || classify::tells(before)) {
            *told = Some((error, reason.to_owned()));
        }
    }

    pub(super) fn told(&self) -> Option<(KafkaError, String)> {
        self.lock().clone()
    }

    /// Whether it says that an operator must fix something.
    pub(super) fn has_reason(&self) -> bool {
        self.lock().as_ref().is_some_and(|(error, _)| classify::tells(error))
    }

    /// Whether it says that a log-in was refused, or that there is nothing to log in with.
    pub(super) fn is_of_log_in(&self) -> bool {
        let refused = [Some(RDKafkaErrorCode::Authentication), Some(RDKafkaErrorCode::SaslAuthenticationFailed)];
        self.lock().as_ref().is_some_and(|(error, _)| refused.contains(&error.rdkafka_error_code()))
    }

    /// A lasting trouble is complained of again: within half a minute, for which librdkafka keeps back what it has said already.
    pub(super) fn forget(&self) {
        *self.lock() = None;
    }
}
