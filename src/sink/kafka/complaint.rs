//! What clients have complained of.
//!
//! Promise: while TLS fails for one cause, each client of the cluster gives that cause, also one that was cut off before it heard it. What
//! another client has heard halts no relay: it says why there is no answer, and is forgotten when the cluster has given one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use super::classify;
use crate::sink::{Class, Failure};

/// What is complained of again is complained of within this time: librdkafka keeps back for half a minute what it has said already.
const AGAIN: Duration = Duration::from_secs(60);

/// The last complaint of a cluster's clients about TLS, and when it came. See the module.
#[derive(Debug, Default)]
pub(super) struct OfTls(Mutex<Option<(KafkaError, String, Instant)>>);

impl OfTls {
    fn lock(&self) -> MutexGuard<'_, Option<(KafkaError, String, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn told(&self) -> Option<(KafkaError, String)> {
        let told = self.lock().clone();
        told.filter(|(.., at)| at.elapsed() < AGAIN).map(|(error, reason, _)| (error, reason))
    }

    /// The cluster has answered a client.
    pub(super) fn forget(&self) {
        *self.lock() = None;
    }
}

/// The client's last complaint about the cluster as a whole. A refused log-in or certificate is followed by lost connections and by
/// all brokers being down, in any order, and says more than they do.
#[derive(Debug, Default)]
pub(super) struct Complaint {
    own: Mutex<Option<(KafkaError, String)>>,
    of_tls: Arc<OfTls>,
}

impl Complaint {
    /// Of a client beside others, which share what they hear of TLS.
    pub(super) fn beside(of_tls: Arc<OfTls>) -> Self {
        Self { own: Mutex::default(), of_tls }
    }

    fn lock(&self) -> MutexGuard<'_, Option<(KafkaError, String)>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn hear(&self, error: KafkaError, reason: &str) {
        if classify::is_of_tls(&error, reason) {
            *self.of_tls.lock() = Some((error.clone(), reason.to_owned(), Instant::now()));
        }
        let mut told = self.lock();
        let says_less = error.rdkafka_error_code() == Some(RDKafkaErrorCode::AllBrokersDown);
        if !told.as_ref().is_some_and(|(before, said)| says_less || classify::is_reason(before, said)) {
            *told = Some((error, reason.to_owned()));
        }
    }

    /// The failure that an error of the client is, in the light of what was complained of.
    pub(super) fn failure(&self, error: &KafkaError) -> Failure {
        let told = self.lock().clone();
        if told.as_ref().is_some_and(|(error, reason)| classify::is_reason(error, reason)) {
            return classify::failure(error, told);
        }
        match self.of_tls.told().filter(|_| classify::is_of_connection(error)) {
            Some(heard) => Failure { class: Class::Retry, ..classify::failure(error, Some(heard)) },
            None => classify::failure(error, told),
        }
    }

    /// The failure of what was cut while records were without an answer.
    pub(super) fn interrupted(&self) -> Failure {
        self.failure(&classify::cut())
    }

    /// Whether it says why a client cannot do its work, and not only that it cannot.
    pub(super) fn has_reason(&self) -> bool {
        self.lock().as_ref().is_some_and(|(error, reason)| classify::is_reason(error, reason))
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

#[cfg(test)]
mod tests {
    use rdkafka::error::RDKafkaErrorCode as Code;

    use super::*;

    const ALERT: &str = "ssl://b:9093/1: Receive failed: error:0A000415:SSL routines::sslv3 alert certificate expired: SSL alert number 45";
    const CLOSED: &str = "ssl://b:9093/1: Disconnected while requesting ApiVersion";
    const REFUSED: &str = "kafka_client_certificate_refused";

    fn of_cluster() -> impl Fn() -> Complaint {
        let of_tls = Arc::<OfTls>::default();
        move || Complaint::beside(Arc::clone(&of_tls))
    }

    fn code(complaint: &Complaint) -> (String, Class) {
        let failure = complaint.interrupted();
        (failure.code, failure.class)
    }

    // Guarantee: secrets.kafka-certificate
    #[test]
    fn refused_certificate_is_the_cause_whatever_follows_from_it() {
        let complaint = Complaint::default();
        complaint.hear(KafkaError::Global(Code::BrokerTransportFailure), ALERT);
        for follows in [CLOSED, "1/1 brokers are down", "Connect to b failed: Connection refused"] {
            complaint.hear(KafkaError::Global(Code::BrokerTransportFailure), follows);
            assert_eq!(code(&complaint), (REFUSED.to_owned(), Class::Retry), "{follows}");
        }
        complaint.hear(KafkaError::Global(Code::AllBrokersDown), "1/1 brokers are down");
        assert!(complaint.has_reason() && code(&complaint).0 == REFUSED);
    }

    // Guarantee: secrets.kafka-certificate
    #[test]
    fn client_that_was_cut_off_gives_the_cause_that_another_has_heard_and_halts_nothing() {
        let client = of_cluster();
        let (first, second) = (client(), client());
        second.hear(KafkaError::Global(Code::BrokerTransportFailure), CLOSED);
        assert_eq!(code(&second).0, "kafka_broker_transport_failure");
        first.hear(KafkaError::Global(Code::SSL), "certificate verify failed");
        assert_eq!(code(&first), ("kafka_ssl".to_owned(), Class::Fatal));
        for other in [&second, &client()] {
            assert_eq!(code(other), ("kafka_ssl".to_owned(), Class::Retry));
            let refused = other.failure(&KafkaError::MessageProduction(Code::InvalidRecord));
            assert_eq!(refused.code, "kafka_invalid_record", "the brokers have answered");
        }
        first.of_tls.forget();
        assert_eq!((code(&client()).0.as_str(), code(&first).0.as_str()), ("kafka_message_timed_out", "kafka_ssl"));
    }

    #[test]
    fn refused_log_in_of_one_client_is_no_other_clients() {
        let client = of_cluster();
        client().hear(KafkaError::Global(Code::Authentication), "SASL authentication error");
        assert_eq!(code(&client()).0, "kafka_message_timed_out");
    }
}
