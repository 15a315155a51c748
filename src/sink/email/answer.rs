//! What every end of a delivery means: one table, by the step that it ended at.
//!
//! A mail is handed over by the line with a single dot behind its content, and by nothing else. What ends before that
//! line was sent has sent nothing; what ends behind it without an answer is unknown. Messages and codes quote numbers of
//! the server's answers only: their texts hold addresses.

use std::time::Duration;

use crate::sink::{Class, Failure, KnownError, Phase, Subject};

/// How far a delivery has come: what is being waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::sink) enum Step {
    /// A connection, with TLS where it begins with it.
    #[default]
    Connect,
    /// The server's first line.
    Greeting,
    /// The answer to EHLO.
    Hello,
    /// The answer to STARTTLS, and TLS.
    StartTls,
    /// The answers to AUTH.
    Auth,
    /// The answer to MAIL.
    Mail,
    /// The answer to RCPT.
    Rcpt,
    /// The answer to DATA.
    Data,
    /// The content is being written; its last line is not.
    Content,
    /// The answer to the content.
    Dot,
}

/// Where the server can refuse.
const ANSWERED: [Step; 8] =
    [Step::Greeting, Step::Hello, Step::StartTls, Step::Auth, Step::Mail, Step::Rcpt, Step::Data, Step::Dot];

impl Step {
    /// The word in codes.
    const fn word(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Greeting => "greeting",
            Self::Hello => "ehlo",
            Self::StartTls => "starttls",
            Self::Auth => "auth",
            Self::Mail => "mail",
            Self::Rcpt => "rcpt",
            Self::Data => "data",
            // What comes while the content is written is an early answer to it.
            Self::Content | Self::Dot => "content",
        }
    }

    /// What a refusal there is about: what a server says of an address or of a content is not about the server.
    const fn subject(self) -> Subject {
        match self {
            Self::Rcpt | Self::Content | Self::Dot => Subject::Message,
            Self::Connect | Self::Greeting | Self::Hello | Self::StartTls | Self::Auth | Self::Mail | Self::Data => {
                Subject::Receiver
            }
        }
    }

    /// What the server answers there, for people.
    const fn command(self) -> &'static str {
        match self {
            Self::Connect | Self::Greeting => "the connection",
            Self::Hello => "EHLO",
            Self::StartTls => "STARTTLS",
            Self::Auth => "AUTH",
            Self::Mail => "MAIL FROM",
            Self::Rcpt => "RCPT TO",
            Self::Data => "DATA",
            Self::Content | Self::Dot => "the content",
        }
    }
}

/// Why a delivery ended without a yes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::sink) enum Trouble {
    /// No connection, no trust in it, or it broke.
    Lost(String),
    /// No answer in time.
    TimedOut,
    /// All own connections were in use for too long: nothing was begun.
    Busy,
    /// What came is no SMTP, or no answer to what was asked.
    NoSmtp(&'static str),
    /// A refusal.
    Reply {
        /// From 400 to 599.
        code: u16,
        /// RFC 3463's code, for example `5.1.1`.
        enhanced: Option<String>,
    },
    /// The server does not offer what the configuration asks for.
    NotOffered(Missing),
    /// The password cannot be used.
    Secret(String),
    /// The server takes no mail of this size, and said so before.
    TooLarge {
        /// The mail's.
        bytes: usize,
        /// The server's.
        limit: usize,
    },
}

/// What a server can lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sink) enum Missing {
    /// Encryption.
    StartTls,
    /// A way to sign in with a password.
    Auth,
}

/// The failure that `trouble` at `step` with `target` is.
pub(in crate::sink) fn judge(step: Step, trouble: &Trouble, target: &str) -> Failure {
    use Class::{Fatal, Poison, Retry};
    let failure = |class, code: String, message, hint: &str| Failure::of(class, &code, message, hint);
    match trouble {
        Trouble::TimedOut => unanswered(step, "timeout", format!("{target} did not answer in time")),
        Trouble::Busy => {
            let message =
                format!("all connections to {target} were in use until too little time was left for the mail");
            let hint = "Raise connections, or see why the server is slow";
            failure(Retry, "smtp_busy".to_owned(), message, hint).about(Subject::Elsewhere)
        }
        Trouble::Lost(reason) if step == Step::Connect => {
            unanswered(step, "connect", format!("{target} cannot be reached: {reason}"))
        }
        Trouble::Lost(reason) => unanswered(step, "broken", format!("{target} broke off: {reason}")),
        Trouble::NoSmtp(why) => {
            unanswered(step, "broken", format!("{target} did not answer as SMTP servers do: {why}"))
        }
        Trouble::Reply { code, enhanced } => {
            let (class, hint) = meaning(step, *code, enhanced.as_deref());
            let detail = enhanced.as_ref().map(|enhanced| format!(" {enhanced}")).unwrap_or_default();
            let message = format!("{target} answered {code}{detail} to {}", step.command());
            let subject = if matches!(*code, 502 | 503) { Subject::Receiver } else { step.subject() };
            failure(class, format!("smtp_{}_{code}", step.word()), message, hint).about(subject)
        }
        // It may be an attack on the connection, which passes; and no mail goes out in clear meanwhile.
        Trouble::NotOffered(Missing::StartTls) => {
            let message = format!("{target} does not offer STARTTLS: nothing is sent in clear");
            let hint = "Let the server offer STARTTLS, or write security = \"tls\" with its port";
            failure(Retry, "smtp_no_starttls".to_owned(), message, hint)
        }
        Trouble::NotOffered(Missing::Auth) => {
            let message = format!("{target} offers neither AUTH PLAIN nor AUTH LOGIN");
            let hint = "Let the server offer one of the two, or remove username and password_file";
            failure(Fatal, "smtp_no_auth".to_owned(), message, hint)
        }
        Trouble::Secret(why) => Failure::of(
            Fatal,
            "secret_unreadable",
            format!("The secret of relay.sink.email.password_file cannot be used: {why}"),
            "Make the secret's file readable for the relay's user, with the secret as its only content, then \
             `outbox-relay cursor resume NAME`",
        ),
        Trouble::TooLarge { bytes, limit } => Failure::of(
            Poison,
            "message_too_large",
            format!("The mail has {bytes} bytes, {target} takes {limit}"),
            "Send less by the template, or let the server take larger mails",
        ),
    }
}

/// No answer, or none that is understood: unknown from the last line on.
fn unanswered(step: Step, word: &str, what: String) -> Failure {
    let ambiguous = step >= Step::Dot;
    let (code, hint) = match (ambiguous, word) {
        (true, _) => (
            format!("smtp_{word}_after_data"),
            "The server may have taken the mail: look for its Message-ID in the server's log",
        ),
        (false, "timeout") if step == Step::Greeting => (
            "smtp_timeout".to_owned(),
            "See whether the server is slow, or raise timeout; a server that speaks TLS from the first byte (port 465) says nothing before: \
             it needs security = \"tls\"",
        ),
        (false, "timeout") => ("smtp_timeout".to_owned(), "See whether the server is slow, or raise timeout"),
        (false, _) => (
            format!("smtp_{word}"),
            "See whether the server is up, its name, port and security are right, and its certificate is signed by an \
             authority of ca_file or of the system's",
        ),
    };
    let message = format!("{what} (at {})", step.command());
    Failure { ambiguous, ..Failure::of(Class::Retry, &code, message, hint) }
}

/// What a refusal means.
fn meaning(step: Step, code: u16, enhanced: Option<&str>) -> (Class, &'static str) {
    use Class::{Fatal, Poison, Retry};
    // RFC 3463's 7 is policy. Of receivers, too; but a server that refuses this client refuses every row alike, and must
    // not have them all dead-lettered.
    let is_policy = enhanced.is_some_and(|enhanced| enhanced.starts_with("5.7."));
    // Its X.4.5 is congestion, which passes whatever the code says: a sender's quota of the day, for example.
    let is_congestion = enhanced.is_some_and(|enhanced| enhanced == "5.4.5");
    match (step, code) {
        (Step::Mail | Step::Rcpt | Step::Data | Step::Content | Step::Dot, 500..) if is_congestion => (
            Retry,
            "The server takes no more mail from this sender now, a quota perhaps: see what it allows, and set rate_per_second",
        ),
        (_, 421) => (Retry, "The server is closing the connection: see its log for this moment"),
        (Step::Connect | Step::Greeting | Step::Hello | Step::StartTls, _) => {
            (Retry, "The server takes no mail from here now: see its log for this moment")
        }
        (Step::Auth, 400..=499) => (Retry, "The server cannot check the password now: see its log for this moment"),
        (Step::Auth, _) => (Fatal, "Fix username and password_file"),
        (_, 530 | 534 | 535 | 538) => {
            (Fatal, "The server wants another sign-in: set username and password_file, or fix them")
        }
        // About the lines before, not about a row.
        (_, 502 | 503) if !is_policy || matches!(step, Step::Content | Step::Dot) => {
            (Retry, "The server has lost the thread, or wants a sign-in (username, password_file): see its log")
        }
        (Step::Mail, 552) => (Poison, "The mail is larger than the server takes: send less by the template"),
        // MAIL tells the server the configured sender and nothing of the row: the next row would fare no better.
        (Step::Mail, 500..) => (Fatal, "Set from to an address that the server lets this user send as"),
        (Step::Rcpt | Step::Data, 500..) if is_policy => {
            (Fatal, "Let the server take mail from this relay for others: its log says what it does not permit")
        }
        (Step::Rcpt, 500..) => (Poison, "Fix the address in the row: the server does not take mail for it"),
        (Step::Content | Step::Dot, 552) => {
            (Poison, "The mail is too large for the server or the mailbox: send less by the template")
        }
        (Step::Data | Step::Content | Step::Dot, 500..) => {
            (Poison, "The server refuses this mail, its content perhaps: see its log, fix the row or the template")
        }
        (Step::Rcpt, _) => (Retry, "The server does not take mail for this address now: see its log"),
        (Step::Mail | Step::Data | Step::Content | Step::Dot, _) => {
            (Retry, "The server takes no mail now: see its log, and set rate_per_second to what it allows")
        }
    }
}

/// What every end of a delivery means, for people.
#[must_use]
pub fn known_errors() -> Vec<KnownError> {
    let ends = [
        (Step::Connect, Trouble::Busy),
        (Step::Connect, Trouble::Lost(String::new())),
        (Step::Mail, Trouble::Lost(String::new())),
        (Step::Mail, Trouble::TimedOut),
        (Step::Dot, Trouble::TimedOut),
        (Step::Dot, Trouble::Lost(String::new())),
        (Step::StartTls, Trouble::NotOffered(Missing::StartTls)),
        (Step::Auth, Trouble::NotOffered(Missing::Auth)),
    ];
    let mut known: Vec<KnownError> = Vec::new();
    let mut add = |codes: String, failure: Failure, phase: Phase| {
        let line = KnownError { codes, class: failure.class, phase, hint: failure.hint };
        match known.iter_mut().find(|before| before.phase == phase && before.hint == line.hint) {
            Some(before) => before.codes = format!("{}, {}", before.codes, line.codes),
            None => known.push(line),
        }
    };
    for (step, trouble) in ends {
        let failure = judge(step, &trouble, "");
        let phase = if failure.ambiguous { Phase::Unknown } else { Phase::Unsent };
        add(format!("`{}`", failure.code), failure, phase);
    }
    for step in ANSWERED {
        let mut first = 400;
        for code in 400..=599 {
            if code < 599 && meaning(step, code + 1, None) == meaning(step, code, None) {
                continue;
            }
            let failure = judge(step, &Trouble::Reply { code, enhanced: None }, "");
            let word = step.word();
            let codes = if first == code {
                format!("`smtp_{word}_{code}`")
            } else {
                format!("`smtp_{word}_{first}` to `smtp_{word}_{code}`")
            };
            add(codes, failure, Phase::Answered);
            first = code + 1;
        }
    }
    let denied = Trouble::Reply { code: 554, enhanced: Some("5.7.1".to_owned()) };
    add("`smtp_rcpt_500` to `smtp_rcpt_599` with 5.7.x".to_owned(), judge(Step::Rcpt, &denied, ""), Phase::Answered);
    known
}

/// How long an answer to a question that costs nothing may take, out of the time for a whole delivery.
pub(super) fn brief(timeout: Duration) -> Duration {
    timeout / 4
}

#[cfg(test)]
mod tests;
