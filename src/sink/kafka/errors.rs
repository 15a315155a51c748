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

/// The code of a client that could not be made.
pub const NO_CLIENT_CODE: &str = "kafka_client";

/// What follows when no client can be made: settings that do not go together, a file that is not there, no more threads. Tried
/// again, because the last two pass.
pub(super) const NO_CLIENT: Meaning = Meaning {
    class: Class::Retry,
    phase: Phase::Unsent,
    hint: "The Kafka client cannot be made: mend what it names in [kafka.properties], and restart the replicas; a file named \
           there is read again at the next try.",
    codes: &[],
};

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
    TABLE.iter().map(line).chain([no_client]).collect()
}

/// A code as a short stable word.
pub(super) fn word(code: Code) -> String {
    let mut word = String::new();
    for letter in format!("{code:?}").chars() {
        if letter.is_ascii_uppercase() && !word.is_empty() && !word.ends_with(|c: char| c.is_ascii_uppercase()) {
            word.push('_');
        }
        word.push(letter);
    }
    word.to_ascii_lowercase()
}
