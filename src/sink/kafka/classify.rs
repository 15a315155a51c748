//! What Kafka's errors mean.

use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};

use super::errors::{CERTIFICATE, CERTIFICATE_CODE, NO_CLIENT, NO_CLIENT_CODE, UNKNOWN_PARTITION_CODE, meaning, word};
use crate::sink::{Class, Failure, Phase, Subject};
use crate::tls;

/// The failure that an error of the producer is; `last` is the client's last complaint about the cluster as a whole,
/// which tells a time-out's reason.
pub(super) fn failure(error: &KafkaError, last: Option<(KafkaError, String)>) -> Failure {
    if matches!(error, KafkaError::ClientCreation(_) | KafkaError::ClientConfig(..)) {
        return Failure {
            class: NO_CLIENT.class,
            ambiguous: false,
            code: NO_CLIENT_CODE.to_owned(),
            message: match error {
                // Its own words have the value, which may be a secret.
                KafkaError::ClientConfig(_, reason, name, _) => format!("Client config error: {name}: {reason}"),
                error => error.to_string(),
            },
            hint: NO_CLIENT.hint.to_owned(),
            subject: Subject::Receiver,
            retry_after: None,
        };
    }
    let code = error.rdkafka_error_code().unwrap_or(Code::Fail);
    let away_or_out = is_of_connection(error);
    // The cluster is well: one of the relay's own clients has not heard of a change.
    let subject = if code == Code::UnknownPartition { Subject::Elsewhere } else { Subject::Receiver };
    // What was in flight may have been stored, whatever the client complains of beside it.
    let ambiguous = meaning(code).phase == Phase::Unknown;
    let (code, reason) = match last {
        Some((cause, reason)) if away_or_out || code == Code::Fatal => {
            let cause = cause.rdkafka_error_code().unwrap_or(code);
            // Of this one the client counts brokers that it has not found down yet: "0/1 brokers are down".
            let reason = if cause == Code::AllBrokersDown { "no broker can be reached" } else { &reason };
            (cause, format!("{error}; the client says: {reason}"))
        }
        _ => (code, error.to_string()),
    };
    let (meaning, code) = if away_or_out && tls::refuses_certificate(&reason) {
        (&CERTIFICATE, CERTIFICATE_CODE.to_owned())
    } else {
        (meaning(code), format!("kafka_{}", word(code)))
    };
    Failure {
        class: meaning.class,
        ambiguous,
        code,
        message: reason,
        hint: meaning.hint.to_owned(),
        subject,
        retry_after: None,
    }
}

/// Whether the client does not know a partition of the topic. It may not ask the cluster again for minutes.
pub(super) fn is_of_outdated_client(failure: &Failure) -> bool {
    failure.code == UNKNOWN_PARTITION_CODE
}

/// The same with the topic's name, where the error is about the topic: the client's words do not have it.
pub(super) fn of_topic(failure: Failure, error: &KafkaError, topic: Option<&str>) -> Failure {
    use Code::{InvalidTimestamp, InvalidTopic, TopicAuthorizationFailed, UnknownPartition};
    use Code::{UnknownTopic, UnknownTopicId, UnknownTopicOrPartition};
    let about = [
        InvalidTimestamp,
        InvalidTopic,
        TopicAuthorizationFailed,
        UnknownPartition,
        UnknownTopic,
        UnknownTopicId,
        UnknownTopicOrPartition,
    ];
    let is_about = error.rdkafka_error_code().is_some_and(|code| about.contains(&code));
    match topic.filter(|_| is_about) {
        Some(topic) => Failure { message: format!("topic {topic}: {}", failure.message), ..failure },
        None => failure,
    }
}

/// The failure of a record whose topic the row itself names: an unknown topic, or one that is denied, is the row's fault.
pub(super) fn routed(failure: Failure, error: &KafkaError) -> Failure {
    let hint = match error.rdkafka_error_code() {
        Some(Code::UnknownTopicOrPartition | Code::UnknownTopic | Code::InvalidTopic) => {
            "Create the topic that the template gives for this row, or fix the row; topics are never created automatically."
        }
        Some(Code::TopicAuthorizationFailed) => {
            "Grant this user Write and Describe on the topic that the template gives for this row, or fix the row."
        }
        _ => return failure,
    };
    Failure { class: Class::Poison, hint: hint.to_owned(), ..failure }
}

/// The error of what was cut while records were without an answer.
pub(super) fn cut() -> KafkaError {
    KafkaError::MessageProduction(Code::MessageTimedOut)
}

/// The failure of what was cut so, where no client has said why.
pub(super) fn interrupted() -> Failure {
    failure(&cut(), None)
}

/// Whether an error says no more than that no broker has answered: what the client complains of tells why.
pub(super) fn is_of_connection(error: &KafkaError) -> bool {
    let code = error.rdkafka_error_code().unwrap_or(Code::Fail);
    let away = matches!(code, Code::BrokerTransportFailure | Code::AllBrokersDown);
    away || matches!(code, Code::MessageTimedOut | Code::OperationTimedOut | Code::PurgeQueue | Code::PurgeInflight)
}

/// Whether a complaint of the client says what must be fixed: it tells more than what follows from it.
pub(super) fn is_reason(error: &KafkaError, reason: &str) -> bool {
    let is_fatal = error.rdkafka_error_code().is_some_and(|code| meaning(code).class == Class::Fatal);
    is_fatal || tls::refuses_certificate(reason)
}

/// Whether a complaint is about certificates: the brokers', or the client's own.
pub(super) fn is_of_tls(error: &KafkaError, reason: &str) -> bool {
    error.rdkafka_error_code() == Some(Code::SSL) || tls::refuses_certificate(reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_about_a_topic_names_the_topic() {
        let of = |code, topic| {
            let error = KafkaError::MessageProduction(code);
            of_topic(failure(&error, None), &error, topic).message
        };
        assert!(of(Code::UnknownTopic, Some("bookings")).starts_with("topic bookings: "));
        assert!(of(Code::TopicAuthorizationFailed, Some("bookings")).starts_with("topic bookings: "));
        assert!(!of(Code::MessageTimedOut, Some("bookings")).contains("bookings"));
        assert!(!of(Code::UnknownTopic, None).starts_with("topic"));
    }

    #[test]
    fn client_that_does_not_know_a_partition_says_nothing_of_the_cluster() {
        let error = KafkaError::MessageProduction(Code::UnknownPartition);
        let told = of_topic(failure(&error, None), &error, Some("bookings"));
        assert!(is_of_outdated_client(&told) && told.message.starts_with("topic bookings: "), "{told:?}");
        assert_eq!((told.class, told.ambiguous, told.is_outage()), (Class::Retry, false, false));
        assert!(!is_of_outdated_client(&interrupted()));
    }

    #[test]
    fn cut_without_a_complaint_names_what_keeps_brokers_from_acknowledging() {
        let hint = interrupted().hint;
        assert!(["leader", "min.insync.replicas", "quota"].iter().all(|cause| hint.contains(cause)), "{hint}");
    }

    #[test]
    fn refused_certificate_of_the_client_is_no_broken_connection() {
        let said = "ssl://b:9093/bootstrap: Receive failed: error:0A000415:SSL routines::sslv3 alert certificate expired: SSL alert number 45";
        for cause in [Code::BrokerTransportFailure, Code::AllBrokersDown] {
            let last = (KafkaError::Global(Code::BrokerTransportFailure), said.to_owned());
            let told = failure(&KafkaError::MessageProduction(cause), Some(last));
            assert_eq!((told.code.as_str(), told.class), ("kafka_client_certificate_refused", Class::Retry));
            assert!(told.hint.contains("ssl.certificate.location"), "{}", told.hint);
        }
        let other = (KafkaError::Global(Code::BrokerTransportFailure), said.replace("45", "40"));
        let told = failure(&KafkaError::MessageProduction(Code::MessageTimedOut), Some(other));
        assert_eq!(told.code, "kafka_broker_transport_failure");
    }

    #[test]
    fn brokers_down_are_not_counted() {
        let last = (KafkaError::Global(Code::AllBrokersDown), "0/1 brokers are down".to_owned());
        let failure = failure(&KafkaError::MessageProduction(Code::MessageTimedOut), Some(last));
        assert_eq!(failure.code, "kafka_all_brokers_down");
        assert!(failure.message.ends_with("; the client says: no broker can be reached"), "{}", failure.message);
        let last = (KafkaError::Global(Code::Authentication), "refused".to_owned());
        let message = super::failure(&KafkaError::MessageProduction(Code::MessageTimedOut), Some(last)).message;
        assert!(message.ends_with("; the client says: refused"), "{message}");
    }
}
