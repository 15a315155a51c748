//! What the gateway answers: Twilio's checks, in Twilio's form.

use std::sync::Mutex;

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::{ACCOUNT_SID, AUTHORIZATION, Form, Shared, Sms, lock};

/// Records the message, if it passes the checks.
pub(super) fn record(shared: &Mutex<Shared>, account: &str, headers: &HeaderMap, form: Form) -> Response {
    let text = |name: header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    if text(header::AUTHORIZATION).as_deref() != Some(AUTHORIZATION) {
        return error(StatusCode::UNAUTHORIZED, 20003, "Authenticate");
    }
    if account != ACCOUNT_SID {
        let message = format!("The requested resource /2010-04-01/Accounts/{account}/Messages.json was not found");
        return error(StatusCode::NOT_FOUND, 20404, &message);
    }
    let Form { to, from, body } = form;
    if !is_number(&to) {
        return error(StatusCode::BAD_REQUEST, 21211, &format!("Invalid 'To' Phone Number: {to}"));
    }
    if !is_number(&from) {
        return error(StatusCode::BAD_REQUEST, 21212, &format!("Invalid From Number (caller ID): {from}"));
    }
    if body.is_empty() {
        return error(StatusCode::BAD_REQUEST, 21602, "Message body is required");
    }
    if body.chars().count() > 1600 {
        let message = "The concatenated message body exceeds the 1600 character limit";
        return error(StatusCode::BAD_REQUEST, 21617, message);
    }
    let idempotency_key = text(header::HeaderName::from_static("idempotency-key"));
    let mut shared = lock(shared);
    let sid = format!("SM{:032x}", shared.requests);
    let answer = json!({
        "sid": sid, "account_sid": ACCOUNT_SID, "to": to, "from": from, "body": body, "status": "queued",
        "error_code": null, "error_message": null, "num_segments": "1", "direction": "outbound-api",
    });
    let at = crate::now();
    shared.accepted.push(Sms { at, to, from, body, idempotency_key, sid });
    (StatusCode::CREATED, axum::Json(answer)).into_response()
}

/// An answer in Twilio's form.
pub(super) fn error(status: StatusCode, code: u32, message: &str) -> Response {
    let more_info = format!("https://www.twilio.com/docs/errors/{code}");
    let answer = json!({"code": code, "message": message, "more_info": more_info, "status": status.as_u16()});
    (status, axum::Json(answer)).into_response()
}

pub(super) fn refuse(status: u16, retry_after: Option<u64>) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let code = if status == StatusCode::TOO_MANY_REQUESTS { 20429 } else { 20500 };
    let mut answer = error(status, code, "Refused, as told");
    if let Some(seconds) = retry_after {
        answer.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    answer
}

/// E.164: a plus sign and up to 15 digits.
fn is_number(text: &str) -> bool {
    text.strip_prefix('+').is_some_and(|digits| {
        (7..=15).contains(&digits.len()) && !digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit())
    })
}
