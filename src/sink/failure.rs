//! Why publishing stopped, and what follows from it.

use std::time::Duration;

/// What an error means for the turn. (`docs/ERRORS.md`: an outage of the sink is not a poison message.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// It will pass: back off and try again, for ever; not counted against any message.
    Retry,
    /// This message will never be accepted.
    Poison,
    /// Configuration or credentials: the relay halts until somebody mends them.
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

/// Why publishing stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What follows from it.
    pub class: Class,
    /// Whether the receiver may have accepted the message although no answer came.
    pub ambiguous: bool,
    /// A short stable word, for example `message_too_large` or `http_503`.
    pub code: String,
    /// What happened, in one sentence, without payload and without secrets.
    pub message: String,
    /// What an operator can do about it.
    pub hint: String,
    /// The receiver's wish for a pause, already capped.
    pub retry_after: Option<Duration>,
}

impl Failure {
    /// A failure that needs somebody, at a message that was not sent.
    #[must_use]
    pub fn of(class: Class, code: &str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        let (message, hint) = (message.into(), hint.into());
        Self { class, ambiguous: false, code: code.to_owned(), message, hint, retry_after: None }
    }

    /// What a publication reports that was ended while the receiver had a message and had not answered.
    pub(crate) fn deadline() -> Self {
        Self {
            class: Class::Retry,
            ambiguous: true,
            code: "deadline".to_owned(),
            message: "The turn ended before the receiver answered".to_owned(),
            hint: "The message is sent again; see whether the receiver is slow, or raise turn.deadline".to_owned(),
            retry_after: None,
        }
    }

    /// Whether the server ended a statement because it took too long: one for fewer rows takes less.
    #[must_use]
    pub fn is_too_slow(&self) -> bool {
        self.code == "sql_57014"
    }

    /// Whether the receiver is out, so that no message would get through: not a refusal of this one, and not a wish for
    /// fewer of them, which a provider may put into a code of its own; nor is it a lack of own connections, the topic of the dead letters, another
    /// transaction that a statement waits for, nor a program's own wish to be started again.
    #[must_use]
    pub fn is_outage(&self) -> bool {
        // What a mail server says of an address or of a mail's content is not about the server.
        let others = ["twilio_", "sql_", "smtp_rcpt_", "smtp_content_", "command_"];
        let other = matches!(self.code.as_str(), "http_429" | "dead_letter_topic" | "smtp_busy")
            || others.iter().any(|prefix| self.code.starts_with(prefix));
        self.class == Class::Retry && !other
    }
}
