//! What Kafka's errors mean.

use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};

use crate::sink::{Class, Failure};

/// The failure that an error of the producer is; `last` is the client's last complaint about the cluster as a whole,
/// which tells a time-out's reason.
pub(super) fn failure(error: &KafkaError, last: Option<(KafkaError, String)>) -> Failure {
    let code = error.rdkafka_error_code().unwrap_or(Code::Fail);
    let away = matches!(code, Code::BrokerTransportFailure | Code::AllBrokersDown);
    let timed_out =
        matches!(code, Code::MessageTimedOut | Code::OperationTimedOut | Code::PurgeQueue | Code::PurgeInflight);
    let (code, reason) = match last {
        Some((cause, reason)) if timed_out || away || code == Code::Fatal => {
            (cause.rdkafka_error_code().unwrap_or(code), format!("{error}; the client says: {reason}"))
        }
        _ => (code, error.to_string()),
    };
    let (class, hint) = class(code);
    Failure {
        class,
        // Without an answer, what was in flight may have been stored.
        ambiguous: timed_out,
        code: format!("kafka_{}", word(code)),
        message: reason,
        hint: hint.to_owned(),
        retry_after: None,
    }
}

/// The failure of a record whose topic the row itself names: an unknown topic is the row's fault.
pub(super) fn routed(failure: Failure, error: &KafkaError) -> Failure {
    let topic_is_wrong = matches!(
        error.rdkafka_error_code(),
        Some(Code::UnknownTopicOrPartition | Code::UnknownTopic | Code::InvalidTopic)
    );
    if !topic_is_wrong {
        return failure;
    }
    Failure {
        class: Class::Poison,
        hint: "Create the topic that the template gives for this row, or mend the row; topics are never created \
               automatically."
            .to_owned(),
        ..failure
    }
}

/// The failure of a publication that was cut while records were without an answer.
pub(super) fn interrupted(last: Option<(KafkaError, String)>) -> Failure {
    failure(&KafkaError::MessageProduction(Code::MessageTimedOut), last)
}

/// Whether a complaint of the client says that somebody must mend something: it tells more than what follows from it.
pub(super) fn tells(error: &KafkaError) -> bool {
    error.rdkafka_error_code().is_some_and(|code| class(code).0 == Class::Fatal)
}

/// Unknown errors are retried: that delays, but never skips.
fn class(code: Code) -> (Class, &'static str) {
    match code {
        Code::MessageSizeTooLarge
        | Code::InvalidRecord
        | Code::InvalidMessage
        | Code::InvalidMessageSize
        | Code::MessageBatchTooLarge
        | Code::InvalidTimestamp => (
            Class::Poison,
            "The broker refuses a record, and its batch with it; compare the topic's max.message.bytes and validation \
             settings with the rows from this one on.",
        ),
        Code::UnknownTopicOrPartition | Code::UnknownTopic | Code::UnknownPartition | Code::InvalidTopic => {
            (Class::Fatal, "Create the topic, or correct `topic`; topics are never created automatically.")
        }
        Code::TopicAuthorizationFailed | Code::ClusterAuthorizationFailed => (
            Class::Fatal,
            "Grant this user Write and Describe on the topic, and IdempotentWrite on clusters before 3.0.",
        ),
        Code::Authentication
        | Code::SaslAuthenticationFailed
        | Code::UnsupportedSASLMechanism
        | Code::IllegalSASLState
        | Code::SSL => (
            Class::Fatal,
            "Check the security.*, sasl.* and ssl.* properties under [kafka.properties]; a broker's certificate must be \
             valid now, name the host it is reached by, and be signed by an authority of ssl.ca.location.",
        ),
        Code::InvalidRequiredAcks
        | Code::UnsupportedVersion
        | Code::UnsupportedForMessageFormat
        | Code::UnsupportedCompressionType
        | Code::PolicyViolation
        | Code::InvalidArgument
        | Code::NotImplemented => (
            Class::Fatal,
            "The cluster or the client refuses a setting; check [kafka.properties] and the topic's settings.",
        ),
        _ => (Class::Retry, "The relay tries again by itself; check that the brokers run and can be reached."),
    }
}

/// A code as a short stable word.
fn word(code: Code) -> String {
    let mut word = String::new();
    for letter in format!("{code:?}").chars() {
        if letter.is_ascii_uppercase() && !word.is_empty() && !word.ends_with(|c: char| c.is_ascii_uppercase()) {
            word.push('_');
        }
        word.push(letter);
    }
    word.to_ascii_lowercase()
}
