//! What follows from an error of the library of credentials.

use reqsign_core::{Error, ErrorKind};

use crate::visible;

/// How much of a service's own words a message has.
const LONGEST: usize = 300;
/// Codes of STS that pass by themselves: a token that is being replaced, a service or an issuer that is away.
const PASSING: [&str; 11] = [
    "ExpiredToken",
    "ExpiredTokenException",
    "IDPCommunicationError",
    "InternalError",
    "InternalFailure",
    "RequestLimitExceeded",
    "ServiceUnavailable",
    "Throttling",
    "ThrottlingException",
    "TokenRefreshRequired",
    "TooManyRequestsException",
];

/// Whether a service has answered that it gives no credentials, which no further attempt changes.
pub(super) fn is_final(error: &Error) -> bool {
    if error.is_retryable() || error.kind() == ErrorKind::RateLimited {
        return false;
    }
    let said = |name: &str| error.context().iter().find_map(|context| context.strip_prefix(name)?.strip_prefix(": "));
    match (said("error_code"), said("http_status")) {
        (Some(code), _) => !PASSING.contains(&code),
        (None, Some(status)) => status.starts_with('4') && !status.starts_with("408") && !status.starts_with("429"),
        (None, None) => false,
    }
}

/// The error in words, with what was seen on the way. Services know none of the secrets but those that they were sent, which are
/// taken out where answers are received.
pub(super) fn words(error: &Error, trouble: Option<String>) -> String {
    let said = error.to_string();
    let words = match trouble {
        Some(trouble) if !said.contains(&trouble) => format!("{said}: {trouble}"),
        Some(_) | None => said,
    };
    visible::words(words.trim(), LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_service_refuses_for_good_is_final() {
        let sts = |code: &str| Error::unexpected(code).with_context(format!("error_code: {code}"));
        for code in ["AccessDenied", "InvalidIdentityToken", "ValidationError", "InvalidClientTokenId"] {
            assert!(is_final(&sts(code)), "{code}");
        }
        for code in ["ExpiredToken", "Throttling", "IDPCommunicationError"] {
            assert!(!is_final(&sts(code)), "{code}");
        }
        let status = |status: &str| Error::unexpected("x").with_context(format!("http_status: {status}"));
        for (of, fatal) in [("403 Forbidden", true), ("429 Too Many Requests", false), ("500 Internal", false)] {
            assert_eq!(is_final(&status(of)), fatal, "{of}");
        }
        assert!(!is_final(&status("403 Forbidden").set_retryable(true)));
        assert!(!is_final(&Error::config_invalid("no token file")), "it may be mounted a moment later");
    }

    #[test]
    fn words_are_short_and_play_no_tricks() {
        let long = Error::unexpected(format!("no\u{1b}[2J{}", "x".repeat(9_999)));
        let words = words(&long, Some("why".to_owned()));
        assert!(words.len() <= LONGEST && !words.contains('\u{1b}'), "{words}");
        assert_eq!(super::words(&Error::unexpected("a"), Some("b".to_owned())), "a: b");
        assert_eq!(super::words(&Error::unexpected("a: b"), Some("b".to_owned())), "a: b");
    }
}
