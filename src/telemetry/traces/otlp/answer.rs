//! What a collector's answer means (<https://opentelemetry.io/docs/specs/otlp/#otlphttp-response>).

use std::error::Error;
use std::time::{Duration, SystemTime};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message as _;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Response, StatusCode};

use crate::retry_after::retry_after;
use crate::visible;

/// How long the collector may take for a request.
pub(super) const TIMEOUT: Duration = Duration::from_secs(3);
/// The longest pause that it can ask for: what comes meanwhile waits in the queue, or is dropped and counted.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// The most that is read of an answer.
const ANSWER: usize = 64 << 10;
/// The most that is repeated of its words.
const WORDS: usize = 300;

/// Why spans were not taken.
#[derive(Debug)]
pub(in crate::telemetry::traces) struct Refused {
    pub(in crate::telemetry::traces) why: String,
    /// It may take them a moment later.
    pub(super) passes: bool,
    /// The pause that it asks for, bounded.
    pub(super) pause: Option<Duration>,
}

impl Refused {
    /// It could not be asked, and the next attempt may do better.
    pub(super) fn unasked(why: String) -> Self {
        Self { why, passes: true, pause: None }
    }

    /// It takes them at no time.
    fn for_good(why: String) -> Self {
        Self { why, passes: false, pause: None }
    }
}

/// What is known of spans that were taken.
#[derive(Debug, Default)]
pub(in crate::telemetry::traces) struct Taken {
    /// How many of them the collector leaves out.
    pub(super) rejected: u64,
    /// Why it does.
    pub(super) why: Option<String>,
}

/// The refusal by a status other than 2xx. The codes that pass are the specification's; of the answer's body nothing is repeated.
pub(super) fn of_status(status: StatusCode, headers: &HeaderMap, now: SystemTime) -> Refused {
    let passes = matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    );
    let pause = headers.get(RETRY_AFTER).filter(|_| passes).and_then(|value| retry_after(value.as_bytes(), now));
    let asks = pause.map(|pause| format!(" and asks to wait for {} s", pause.as_secs().max(1)));
    let why = format!("it answers {status}{}", asks.unwrap_or_default());
    Refused { why, passes, pause: pause.map(|pause| pause.min(LONGEST_PAUSE)) }
}

/// What an answer of 2xx says of the spans.
///
/// # Errors
/// When it cannot be read, or is none of OTLP.
pub(super) async fn taken(mut answer: Response) -> Result<Taken, Refused> {
    let none = || Refused::for_good("its answer is none of OTLP".to_owned());
    let mut bytes = Vec::new();
    while let Some(more) = answer.chunk().await.map_err(|error| Refused::unasked(reason(&error)))? {
        bytes.extend_from_slice(&more);
        if bytes.len() > ANSWER {
            return Err(none());
        }
    }
    let answer = ExportTraceServiceResponse::decode(&*bytes).map_err(|_| none())?;
    Ok(partly(&answer))
}

/// Spans that are rejected are not sent again: the collector takes the others, and would refuse these each time.
fn partly(answer: &ExportTraceServiceResponse) -> Taken {
    let Some(partial) = &answer.partial_success else { return Taken::default() };
    let rejected = u64::try_from(partial.rejected_spans).unwrap_or_default();
    if rejected == 0 {
        return Taken::default();
    }
    let words = visible::words(partial.error_message.trim(), WORDS);
    let words = if words.is_empty() { words } else { format!(": {words}") };
    Taken { rejected, why: Some(format!("it rejects {rejected} of them{words}")) }
}

/// The TLS library's words, which say what is wrong with a certificate, or the innermost cause. Neither holds the URL or a header.
pub(super) fn reason(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return format!("no answer within {TIMEOUT:?}");
    }
    let mut cause = error.source();
    while let Some(inner) = cause.filter(|cause| !cause.is::<native_tls::Error>()).and_then(Error::source) {
        cause = Some(inner);
    }
    cause.map_or_else(|| "the request could not be made".to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTracePartialSuccess;
    use reqwest::header::HeaderValue;

    use super::*;

    fn refused(status: u16, pause: Option<&'static str>) -> Refused {
        let mut headers = HeaderMap::new();
        if let Some(pause) = pause {
            headers.insert(RETRY_AFTER, HeaderValue::from_static(pause));
        }
        of_status(StatusCode::from_u16(status).expect("a status"), &headers, SystemTime::UNIX_EPOCH)
    }

    // Guarantee: observe.spans-harmless
    #[test]
    fn only_codes_of_the_specification_are_retried_and_pauses_are_bounded() {
        for status in [429, 502, 503, 504] {
            assert!(refused(status, None).passes, "{status}");
        }
        for status in [301, 400, 401, 403, 404, 408, 413, 500, 501] {
            let refused = refused(status, Some("7"));
            assert!(!refused.passes && refused.pause.is_none(), "{status}: {refused:?}");
        }
        for (asked, given) in [("7", Some(7)), ("3600", Some(30)), ("0", None), ("soon", None)] {
            assert_eq!(refused(503, Some(asked)).pause, given.map(Duration::from_secs), "{asked}");
        }
        assert_eq!(refused(429, Some("7")).why, "it answers 429 Too Many Requests and asks to wait for 7 s");
        assert_eq!(refused(429, Some("Thu, 01 Jan 1970 00:00:09 GMT")).pause, Some(Duration::from_secs(9)));
    }

    // Guarantee: observe.spans-partial
    #[test]
    fn rejected_spans_are_named_by_bounded_harmless_words() {
        let said = |rejected_spans: i64, words: &str| {
            let partial = ExportTracePartialSuccess { rejected_spans, error_message: words.to_owned() };
            let taken = partly(&ExportTraceServiceResponse { partial_success: Some(partial) });
            (taken.rejected, taken.why)
        };
        assert_eq!(said(0, "a newer version is better"), (0, None));
        assert_eq!(said(-1, "?"), (0, None));
        assert_eq!(said(2, ""), (2, Some("it rejects 2 of them".to_owned())));
        assert_eq!(said(1, " no\u{202e}name \n"), (1, Some("it rejects 1 of them: no\\u{202e}name".to_owned())));
        for long in ["x".repeat(10_000), "\u{202e}".repeat(300)] {
            assert!(said(1, &long).1.expect("said").len() < WORDS + 50);
        }
    }
}
