//! What each of librdkafka's errors means for a producer.

use rdkafka::error::RDKafkaErrorCode as Code;

use self::table::{TABLE, UNHEARD_OF};
use crate::sink::{Class, KnownError, Phase};

mod table;

/// What follows from an error.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meaning {
    pub(super) class: Class,
    pub(super) phase: Phase,
    pub(super) hint: &'static str,
    codes: &'static [Code],
}

/// The word of a code that has no name; the message has its number.
const UNLISTED: &str = "unlisted";

/// The code of a client that could not be made.
pub const NO_CLIENT_CODE: &str = "kafka_client";

/// What follows when no client can be made: settings that do not go together, a file that is not there, no more threads. It
/// is retried, because the last two pass.
pub(super) const NO_CLIENT: Meaning = Meaning {
    class: Class::Retry,
    phase: Phase::Unsent,
    hint: "The Kafka client cannot be created: fix what it names in [kafka.properties], and restart the replicas; a file named \
           there is read again at the next try.",
    codes: &[],
};

/// The code of a broker that refuses the client's certificate: librdkafka takes that for a connection that broke.
pub(super) const CERTIFICATE_CODE: &str = "kafka_client_certificate_refused";

/// What follows from it. It is retried: a certificate that has run out is replaced, and its file read again.
pub(super) const CERTIFICATE: Meaning = Meaning {
    class: Class::Retry,
    phase: Phase::Unknown,
    hint: "The brokers do not take this client's certificate, or miss one: check ssl.certificate.location (or ssl.keystore.location) and \
           ssl.key.location under [kafka.properties]; the files are read again at the next try.",
    codes: &[],
};

/// The code of a client that does not know a partition of the topic.
pub(super) const UNKNOWN_PARTITION_CODE: &str = "kafka_unknown_partition";

/// What follows from a code.
pub(super) fn meaning(code: Code) -> &'static Meaning {
    TABLE.iter().find(|meaning| meaning.codes.contains(&code)).unwrap_or(&UNHEARD_OF)
}

/// The table, for people.
#[must_use]
pub fn known_errors() -> Vec<KnownError> {
    let line = |meaning: &Meaning| KnownError {
        codes: meaning.codes.iter().map(|code| format!("`kafka_{}`", word(*code))).collect::<Vec<_>>().join(", "),
        class: meaning.class,
        phase: meaning.phase,
        hint: meaning.hint.to_owned(),
    };
    let no_client = KnownError { codes: format!("`{NO_CLIENT_CODE}`"), ..line(&NO_CLIENT) };
    let unlisted = KnownError { codes: format!("`kafka_{UNLISTED}`"), ..line(&UNHEARD_OF) };
    let certificate = KnownError { codes: format!("`{CERTIFICATE_CODE}`"), ..line(&CERTIFICATE) };
    TABLE.iter().map(line).chain([no_client, certificate, unlisted]).collect()
}

/// A code as a short stable word.
pub(super) fn word(code: Code) -> String {
    if let Code::Unlisted(_) = code {
        return UNLISTED.to_owned();
    }
    let mut word = String::new();
    for letter in format!("{code:?}").chars() {
        if letter.is_ascii_uppercase() && !word.is_empty() && !word.ends_with(|c: char| c.is_ascii_uppercase()) {
            word.push('_');
        }
        word.push(letter);
    }
    word.to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use rdkafka::error::IsError as _;
    use rdkafka::types::RDKafkaRespErr;

    use super::*;
    use crate::sink::Class;

    #[test]
    fn code_without_name_is_retried_with_its_number() {
        for number in [32_767, 101, 120, -32_768, -1_000] {
            let code = Code::from(RDKafkaRespErr(number));
            assert_eq!((code, word(code).as_str()), (Code::Unlisted(number), "unlisted"));
            assert_eq!(meaning(code).class, Class::Retry);
            assert!(RDKafkaRespErr(number).is_error() && code.to_string().contains(&number.to_string()), "{code}");
        }
    }

    #[test]
    fn clock_of_this_machine_is_no_rows_fault() {
        let refused = meaning(Code::InvalidTimestamp);
        assert_eq!(refused.class, Class::Fatal);
        assert!(refused.hint.contains("clock") && refused.hint.contains("message.timestamp.after.max.ms"));
    }

    #[test]
    fn success_is_the_only_number_that_is_no_error() {
        let no_errors =
            (i32::from(i16::MIN)..=i32::from(i16::MAX)).filter(|number| !RDKafkaRespErr(*number).is_error());
        assert_eq!(no_errors.collect::<Vec<_>>(), [0]);
    }
}
