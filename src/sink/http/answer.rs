//! What every outcome of a request means: one table.
//!
//! Messages name the receiver by scheme, host and port only: paths, queries and bodies hold a row's values.

use std::error::Error;
use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

use reqwest::Response;
use reqwest::header::{HeaderMap, RETRY_AFTER};

use super::gate::Blocked;
use crate::sink::{Class, Failure, KnownError, Phase, Subject};

/// The most bytes of an answer that are read.
const ANSWER_LIMIT: usize = 64 << 10;
/// The longest pause that a receiver can ask for.
pub(in crate::sink) const LONGEST_PAUSE: Duration = Duration::from_secs(15 * 60);

/// The draft of the header `Idempotency-Key` and several providers have 409 for an earlier request that is not finished. Others have it
/// for a row that they refuse.
const KEY_IN_USE: &str = "Fix the row, or let the receiver accept it. After an attempt without a clear answer, which the receiver may still \
                          be at work on, the row is retried up to 12 times before the refusal counts";

/// A pause that the receiver asks for is told from here on.
const WORTH_TELLING: Duration = Duration::from_secs(5);

/// How a request ended, other than by 2xx.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::sink) enum Answer {
    /// No connection: nothing was sent.
    NotSent(String),
    /// The receiver has refused the client's certificate: it has read nothing of the request.
    CertificateRefused(String),
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
        // Under TLS 1.3 the refusal comes when the request is on its way already.
        let why = reason(error);
        if crate::tls::refuses_certificate(&why) {
            return Self::CertificateRefused(why);
        }
        // The order counts: a time-out while connecting is both.
        if error.is_connect() || error.is_builder() {
            Self::NotSent(why)
        } else if error.is_timeout() {
            Self::TimedOut
        } else {
            Self::Broken(why)
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

/// The beginning of the answer's body; what cannot be read is left out, because the status alone decides then.
pub(super) async fn body(response: Response) -> Vec<u8> {
    body_up_to(response, ANSWER_LIMIT).await
}

/// The same, up to so many bytes.
pub(super) async fn body_up_to(mut response: Response, most: usize) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        let room = most - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() >= room {
            break;
        }
    }
    body
}

/// The failure that `answer` of `target` is; `None` for 2xx.
pub(in crate::sink) fn classify(answer: Answer, target: &str) -> Option<Failure> {
    let subject = subject(&answer);
    Some(match answer {
        Answer::NotSent(reason) => unsent(
            "connect",
            format!("{target} cannot be reached: {reason}"),
            "Check that the receiver is up and its name and certificate are right; the sink's ca_file, or without it the variable \
             SSL_CERT_FILE, names a file of authorities instead of the system's",
        ),
        Answer::CertificateRefused(reason) => unsent(
            "client_certificate_refused",
            format!("{target} does not take this client's certificate, or misses one: {reason}"),
            "Write cert_file and key_file of a certificate that the receiver takes; both are read at each connection, and the relay goes \
             on by itself",
        ),
        // A name can resolve to another address later. But either this address is meant, and the operator must allow it, or
        // someone leads the relay into its own network: a retry would give each new address an attempt, and hide it among
        // outages.
        Answer::Blocked(reason) => Failure {
            class: Class::Fatal,
            ambiguous: false,
            subject,
            code: String::from("address_blocked"),
            message: format!("{target} must not be connected to: {reason}"),
            hint: "If this address is meant, write its range into the webhook's allow list, for example \
                   allow = [\"10.1.0.0/16\"]; if not, fix url or the name's records, then `outbox-relay cursor resume NAME`"
                .to_owned(),
            retry_after: None,
        },
        Answer::TimedOut => Failure {
            class: Class::Retry,
            ambiguous: true,
            subject,
            code: String::from("timeout"),
            message: format!("{target} did not answer in time"),
            hint: "Check whether the receiver is slow, or raise the sink's timeout".to_owned(),
            retry_after: None,
        },
        Answer::Broken(reason) => Failure {
            class: Class::Retry,
            ambiguous: true,
            subject,
            code: String::from("broken"),
            message: format!("{target} closed the connection before it answered: {reason}"),
            hint: "Check the receiver's log for this moment".to_owned(),
            retry_after: None,
        },
        // A verdict is about a request that was refused, so nothing is ambiguous.
        Answer::Status { status: 400..=499, verdict: Some(verdict), retry_after } => Failure {
            class: verdict.class,
            ambiguous: false,
            subject,
            code: verdict.code,
            message: format!("{target} refused: {}", verdict.message),
            hint: verdict.hint.to_owned(),
            retry_after: retry_after.filter(|_| verdict.class == Class::Retry),
        },
        Answer::Status { status, retry_after, .. } => return of_status(status, retry_after, subject, target),
    })
}

/// The failure of a status whose body says nothing more.
fn of_status(status: u16, retry_after: Option<Duration>, subject: Subject, target: &str) -> Option<Failure> {
    let (class, ambiguous, hint) = status_class(status)?;
    // Whether an idempotency key is in use at an earlier attempt is the caller's to say.
    let retry_after = retry_after.filter(|_| class == Class::Retry || subject == Subject::KeyInUse);
    let (mut message, mut hint) = (format!("{target} answered {status}"), hint.to_owned());
    if let Some(pause) = retry_after.filter(|pause| class == Class::Retry && *pause >= WORTH_TELLING) {
        let _ = write!(message, " and asks for a pause of {} s", pause.as_secs());
        hint.push_str(". This replica asks again after the pause; a restart of it ends the pause");
    }
    Some(Failure { class, ambiguous, subject, code: format!("http_{status}"), message, hint, retry_after })
}

/// What a status means where the body says nothing more: the class, whether it is ambiguous, the hint; `None` for 2xx.
fn status_class(status: u16) -> Option<(Class, bool, &'static str)> {
    use Class::{Fatal, Poison, Retry};
    Some(match status {
        200..=299 => return None,
        300..=399 => (Fatal, false, "Redirects are not followed: write the final address into url"),
        401 | 403 => (Fatal, false, "Fix the credentials or the permissions of the relay at the receiver"),
        407 => (Fatal, false, "A proxy asks for credentials: let the relay reach the receiver without one"),
        408 => (Retry, true, "Check whether the receiver is slow"),
        409 => (Poison, false, KEY_IN_USE),
        429 => (Retry, false, "The receiver wants fewer requests: set rate_per_second"),
        400..=499 => (Poison, false, "Fix the row or the templates, or let the receiver accept it"),
        500..=599 => (Retry, true, "Check the receiver's log for this moment"),
        0..=199 | 600.. => (Retry, true, "The receiver answered with a status that HTTP does not define"),
    })
}

/// The receiver has read nothing of the request.
fn unsent(code: &str, message: String, hint: &str) -> Failure {
    Failure::of(Class::Retry, code, message, hint).about(Subject::Receiver)
}

fn subject(answer: &Answer) -> Subject {
    match answer {
        Answer::Status { status: 404, verdict: None, .. } => Subject::Missing,
        Answer::Status { status: 409, verdict: None, .. } => Subject::KeyInUse,
        // A provider may ask for fewer requests in a verdict of its own.
        Answer::Status { status: 429, .. } => Subject::TooMany,
        Answer::Status { status: 400..=499, verdict: Some(_), .. } => Subject::Message,
        Answer::Status { .. }
        | Answer::NotSent(_)
        | Answer::CertificateRefused(_)
        | Answer::Blocked(_)
        | Answer::TimedOut
        | Answer::Broken(_) => Subject::Receiver,
    }
}

/// What every status and every other end of a request means, for people.
#[must_use]
pub fn known_errors() -> Vec<KnownError> {
    let none = String::new;
    let ends = [
        Answer::NotSent(none()),
        Answer::CertificateRefused(none()),
        Answer::Blocked(none()),
        Answer::TimedOut,
        Answer::Broken(none()),
    ];
    let ends = ends.into_iter().filter_map(|end| classify(end, "")).map(|failure| {
        let phase = if failure.ambiguous { Phase::Unknown } else { Phase::Unsent };
        KnownError { codes: format!("`{}`", failure.code), class: failure.class, phase, hint: failure.hint }
    });
    let mut spans: Vec<(u16, u16, KnownError)> = Vec::new();
    for status in 100..=999 {
        let Some(failure) = classify(Answer::Status { status, retry_after: None, verdict: None }, "") else { continue };
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

/// How long an answer asks to wait.
pub(in crate::sink) fn pause(headers: &HeaderMap) -> Option<Duration> {
    headers.get(RETRY_AFTER).and_then(|value| retry_after(value.as_bytes(), SystemTime::now()))
}

/// Reads `Retry-After`, no longer than [`LONGEST_PAUSE`].
pub(in crate::sink) fn retry_after(value: &[u8], now: SystemTime) -> Option<Duration> {
    crate::retry_after::retry_after(value, now).map(|pause| pause.min(LONGEST_PAUSE))
}

#[cfg(test)]
mod tests;
