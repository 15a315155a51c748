//! What every outcome of a request means: one table.
//!
//! Messages name the receiver by scheme, host and port only: paths, queries and bodies hold a row's values.

use std::error::Error;
use std::time::{Duration, SystemTime};

use super::gate::Blocked;
use crate::sink::{Class, Failure, KnownError, Phase, Subject};

/// The longest pause that a receiver can ask for.
pub(in crate::sink) const LONGEST_PAUSE: Duration = Duration::from_secs(15 * 60);

/// How a request ended, other than by 2xx.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::sink) enum Answer {
    /// No connection: nothing was sent.
    NotSent(String),
    /// No connection, because the address filter allows none.
    Blocked(String),
    /// No answer in time.
    TimedOut,
    /// The connection broke, or what came was no HTTP.
    Broken(String),
    /// An answer.
    Status {
        /// Its status.
        status: u16,
        /// Its `Retry-After`, capped.
        retry_after: Option<Duration>,
        /// What the provider's own error code means, if it has one.
        verdict: Option<Verdict>,
    },
}

/// What a provider's own error code means. Its texts are ours: the provider's may quote the row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::sink) struct Verdict {
    /// What follows.
    pub(in crate::sink) class: Class,
    /// The provider's name and code.
    pub(in crate::sink) code: String,
    /// What the code says.
    pub(in crate::sink) message: &'static str,
    /// What to do.
    pub(in crate::sink) hint: &'static str,
}

impl From<&reqwest::Error> for Answer {
    fn from(error: &reqwest::Error) -> Self {
        if let Some(blocked) = blocked(error) {
            return Self::Blocked(blocked.to_string());
        }
        // The order counts: a time-out while connecting is both.
        if error.is_connect() || error.is_builder() {
            Self::NotSent(reason(error))
        } else if error.is_timeout() {
            Self::TimedOut
        } else {
            Self::Broken(reason(error))
        }
    }
}

/// The address filter's refusal, when that is what ended the request.
fn blocked(error: &reqwest::Error) -> Option<&Blocked> {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(inner) = cause {
        if let Some(blocked) = inner.downcast_ref() {
            return Some(blocked);
        }
        cause = inner.source();
    }
    None
}

/// The TLS library's words, which say what is wrong with a certificate, or the innermost cause, which is the operating
/// system's. Neither holds a URL.
pub(in crate::sink) fn reason(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
        if cause.is::<native_tls::Error>() {
            break;
        }
    }
    if std::ptr::addr_eq(cause, error) { "the request could not be made".to_owned() } else { cause.to_string() }
}

/// The failure that `answer` of `target` is; `None` for 2xx.
pub(in crate::sink) fn judge(answer: Answer, target: &str) -> Option<Failure> {
    use Class::{Fatal, Poison, Retry};
    let (class, ambiguous, code, message, hint) = match answer {
        Answer::NotSent(ref reason) => {
            let message = format!("{target} cannot be reached: {reason}");
            (
                Retry,
                false,
                "connect".to_owned(),
                message,
                "See whether the receiver is up and its name and certificate are right; SSL_CERT_FILE names a file of \
                 authorities in place of the system's",
            )
        }
        // A name can mean another address by itself, later. But either the address is meant, and somebody must say so, or
        // somebody leads the relay into the network it stands in: trying again would give each new answer a try, and
        // hide it among outages.
        Answer::Blocked(ref reason) => {
            let message = format!("{target} must not be connected to: {reason}");
            (
                Fatal,
                false,
                "address_blocked".to_owned(),
                message,
                "If this address is meant, write its range into the webhook's allow list, for example \
                 allow = [\"10.1.0.0/16\"]; if not, mend url or the name's records, then `outbox-relay cursor resume NAME`",
            )
        }
        Answer::TimedOut => {
            let message = format!("{target} did not answer in time");
            (
                Retry,
                true,
                "timeout".to_owned(),
                message,
                "See whether the receiver is slow, or raise the sink's timeout",
            )
        }
        Answer::Broken(ref reason) => {
            let message = format!("{target} broke off before it answered: {reason}");
            (Retry, true, "broken".to_owned(), message, "See the receiver's log for this moment")
        }
        // A verdict is about a request that was refused, so nothing is ambiguous.
        Answer::Status { status: 400..=499, verdict: Some(ref verdict), .. } => {
            let message = format!("{target} refused: {}", verdict.message);
            (verdict.class, false, verdict.code.clone(), message, verdict.hint)
        }
        Answer::Status { status, .. } => {
            let (class, ambiguous, hint) = match status {
                200..=299 => return None,
                300..=399 => (Fatal, false, "Redirects are not followed: write the final address into url"),
                401 | 403 => (Fatal, false, "Mend the credentials or the permissions of the relay at the receiver"),
                407 => (Fatal, false, "A proxy asks for credentials: let the relay reach the receiver without one"),
                408 => (Retry, true, "See whether the receiver is slow"),
                429 => (Retry, false, "The receiver wants fewer requests: set rate_per_second"),
                400..=499 => (Poison, false, "Mend the row or the templates, or let the receiver accept it"),
                500..=599 => (Retry, true, "See the receiver's log for this moment"),
                0..=199 | 600.. => (Retry, true, "The receiver answered with a status that HTTP does not know"),
            };
            (class, ambiguous, format!("http_{status}"), format!("{target} answered {status}"), hint)
        }
    };
    let retry_after = match answer {
        Answer::Status { retry_after, .. } if class == Retry => retry_after,
        Answer::Status { .. } | Answer::NotSent(_) | Answer::Blocked(_) | Answer::TimedOut | Answer::Broken(_) => None,
    };
    let subject = match answer {
        Answer::Status { status: 404, verdict: None, .. } => Subject::Missing,
        Answer::Status { status: 409, verdict: None, .. } => Subject::KeyInUse,
        // A provider may put its wish for fewer requests into a verdict of its own.
        Answer::Status { status: 429, .. } | Answer::Status { status: 400..=499, verdict: Some(_), .. } => {
            Subject::Message
        }
        Answer::Status { .. } | Answer::NotSent(_) | Answer::Blocked(_) | Answer::TimedOut | Answer::Broken(_) => {
            Subject::Receiver
        }
    };
    Some(Failure { class, ambiguous, subject, code, message, hint: hint.to_owned(), retry_after })
}

/// What every status and every other end of a request means, for people.
#[must_use]
pub fn known_errors() -> Vec<KnownError> {
    let none = String::new;
    let ends = [Answer::NotSent(none()), Answer::Blocked(none()), Answer::TimedOut, Answer::Broken(none())];
    let ends = ends.into_iter().filter_map(|end| judge(end, "")).map(|failure| {
        let phase = if failure.ambiguous { Phase::Unknown } else { Phase::Unsent };
        KnownError { codes: format!("`{}`", failure.code), class: failure.class, phase, hint: failure.hint }
    });
    let mut spans: Vec<(u16, u16, KnownError)> = Vec::new();
    for status in 100..=999 {
        let Some(failure) = judge(Answer::Status { status, retry_after: None, verdict: None }, "") else { continue };
        let phase = if failure.ambiguous { Phase::Unknown } else { Phase::Answered };
        let meaning = KnownError { codes: String::new(), class: failure.class, phase, hint: failure.hint };
        match spans.last_mut() {
            Some((_, last, before)) if *last + 1 == status && *before == meaning => *last = status,
            _ => spans.push((status, status, meaning)),
        }
    }
    let mut known: Vec<KnownError> = ends.collect();
    for (first, last, meaning) in spans {
        let codes = if first == last { format!("`http_{first}`") } else { format!("`http_{first}` to `http_{last}`") };
        let same = |line: &&mut KnownError| KnownError { codes: String::new(), ..(*line).clone() } == meaning;
        match known.iter_mut().find(same) {
            Some(line) => line.codes = format!("{}, {codes}", line.codes),
            None => known.push(KnownError { codes, ..meaning }),
        }
    }
    known
}

/// Reads `Retry-After`: seconds or an HTTP date, no longer than [`LONGEST_PAUSE`]. What is neither, lies in the past,
/// or asks for no pause at all is ignored.
pub(in crate::sink) fn retry_after(value: &[u8], now: SystemTime) -> Option<Duration> {
    let text = std::str::from_utf8(value).ok()?.trim();
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let pause = if digits {
        Duration::from_secs(text.parse().ok()?)
    } else {
        httpdate::parse_http_date(text).ok()?.duration_since(now).ok()?
    };
    (!pause.is_zero()).then(|| pause.min(LONGEST_PAUSE))
}

#[cfg(test)]
mod tests;
