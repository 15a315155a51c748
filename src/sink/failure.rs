//! Why publishing stopped, and what follows from it.

use std::time::Duration;

/// What an error means for the turn. (`docs/ERRORS.md`: an outage of the sink is not a poison message.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// It will pass: back off and try again, indefinitely; not counted against any message.
    Retry,
    /// This message will never be accepted.
    Poison,
    /// Configuration or credentials: the relay halts until an operator fixes them.
    Fatal,
}

impl Class {
    /// The word used in metrics, logs and `status`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Poison => "poison",
            Self::Fatal => "fatal",
        }
    }
}

/// How far a message had come when the error arose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The receiver has provably not got it.
    Unsent,
    /// It may have been accepted although no answer came.
    Unknown,
    /// The receiver has answered: it was not accepted.
    Answered,
}

impl Phase {
    /// The word in `docs/ERRORS.md`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unsent => "unsent",
            Self::Unknown => "unknown",
            Self::Answered => "answered",
        }
    }
}

/// A line of a sink's error table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownError {
    /// Its codes, as in `last_error.code`, with commas.
    pub codes: String,
    /// What follows.
    pub class: Class,
    /// What is known of the message.
    pub phase: Phase,
    /// What an operator can do.
    pub hint: String,
}

/// What a failure is about. With the class, it decides what follows for the circuit and for requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Subject {
    /// The receiver as a whole: while it fails like this, no message gets through.
    #[default]
    Receiver,
    /// This message, its recipient, its statement or program: others may get through.
    Message,
    /// How many messages come in a time: each would get through later.
    TooMany,
    /// The idempotency key: at the receiver an earlier attempt is still in progress (HTTP 409).
    KeyInUse,
    /// What was asked for: the receiver does not have it (HTTP 404).
    Missing,
    /// The time that a statement took: the server ended it, and one for fewer rows takes less.
    TooSlow,
    /// Something else than the receiver: the relay's own connections, the topic of the dead letters.
    Elsewhere,
}

/// How hints begin a command of this program, in backquotes.
const PROGRAM: &str = "outbox-relay ";
/// What stands for the cursor in such a command: what makes a failure does not always know whose it is.
const CURSOR: &str = "NAME";

/// Why publishing stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What follows from it.
    pub class: Class,
    /// Whether the receiver may have accepted the message although no answer came.
    pub ambiguous: bool,
    /// What it is about.
    pub subject: Subject,
    /// A short stable word, for example `message_too_large` or `http_503`.
    pub code: String,
    /// What happened, in one sentence, without payload and without secrets.
    pub message: String,
    /// What an operator can do about it.
    pub hint: String,
    /// The receiver's change for a pause, already capped.
    pub retry_after: Option<Duration>,
}

impl Failure {
    /// A failure of the receiver, at a message that was not sent.
    #[must_use]
    pub fn of(class: Class, code: &str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        let (message, hint) = (message.into(), hint.into());
        let subject = Subject::default();
        Self { class, ambiguous: false, subject, code: code.to_owned(), message, hint, retry_after: None }
    }

    /// The same failure, about something else than the receiver as a whole.
    #[must_use]
    pub fn about(self, subject: Subject) -> Self {
        Self { subject, ..self }
    }

    /// The same failure, with the relay's name in the command of its hint.
    #[must_use]
    pub(crate) fn of_relay(self, relay: &str) -> Self {
        Self { hint: named(&self.hint, relay), ..self }
    }

    /// The same where the receiver may have accepted the message although no answer came. Under `at_most_once` such a message is
    /// never sent again, and is listed for a person to decide.
    #[must_use]
    pub fn in_doubt(self) -> Self {
        Self { ambiguous: true, ..self }
    }

    /// What a publication reports that was ended while the receiver had a message and had not answered.
    pub(crate) fn deadline() -> Self {
        Self {
            class: Class::Retry,
            ambiguous: true,
            subject: Subject::Receiver,
            code: "deadline".to_owned(),
            message: "The turn ended before the receiver answered".to_owned(),
            hint: "The message is sent again; see whether the receiver is slow, or raise turn.deadline".to_owned(),
            retry_after: None,
        }
    }

    /// Whether the server ended a statement because it took too long: one for fewer rows takes less.
    #[must_use]
    pub fn is_too_slow(&self) -> bool {
        self.subject == Subject::TooSlow
    }

    /// Whether the receiver is unavailable, so that no message would get through.
    #[must_use]
    pub fn is_outage(&self) -> bool {
        self.class == Class::Retry
            && match self.subject {
                Subject::Receiver => true,
                Subject::Message
                | Subject::TooMany
                | Subject::KeyInUse
                | Subject::Missing
                | Subject::TooSlow
                | Subject::Elsewhere => false,
            }
    }
}

/// A hint, with the cursor's or the relay's name in the commands of this program that it has. Another `NAME`, of a section of the
/// configuration or of a database, stays as it is.
#[must_use]
pub fn named(hint: &str, name: &str) -> String {
    // Every second part stands in backquotes.
    let part = |(number, part): (usize, &str)| {
        if number % 2 == 1 && part.starts_with(PROGRAM) { part.replace(CURSOR, name) } else { part.to_owned() }
    };
    hint.split('`').enumerate().map(part).collect::<Vec<_>>().join("`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hint_names_the_relay_that_is_to_be_resumed() {
        let hint = "Correct programs.NAME, then `outbox-relay cursor resume NAME`";
        let failure = Failure::of(Class::Fatal, "x", "m", hint).of_relay("events");
        assert_eq!(failure.hint, "Correct programs.NAME, then `outbox-relay cursor resume events`");
    }

    #[test]
    fn hint_names_the_cursor_in_its_own_commands_only() {
        let hint = "`ALTER DATABASE NAME ALLOW_CONNECTIONS true`; move it back (`outbox-relay cursor seek NAME --at INSTANT`), or \
                    `outbox-relay cursor adopt NAME`";
        let told = "`ALTER DATABASE NAME ALLOW_CONNECTIONS true`; move it back (`outbox-relay cursor seek events#0 --at INSTANT`), or \
                    `outbox-relay cursor adopt events#0`";
        assert_eq!(named(hint, "events#0"), told);
        assert_eq!(named("Fix it.", "events"), "Fix it.");
    }
}
