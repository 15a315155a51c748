//! The header `Retry-After` of HTTP (RFC 9110, section 10.2.3).

use std::time::{Duration, SystemTime};

/// How long its value asks to wait: seconds, or until an HTTP date. What is neither, lies in the past, or asks for no pause at all is
/// ignored. The caller bounds it.
#[must_use]
pub(crate) fn retry_after(value: &[u8], now: SystemTime) -> Option<Duration> {
    let text = std::str::from_utf8(value).ok()?.trim();
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let pause = if digits {
        Duration::from_secs(text.parse().ok()?)
    } else {
        httpdate::parse_http_date(text).ok()?.duration_since(now).ok()?
    };
    (!pause.is_zero()).then_some(pause)
}
