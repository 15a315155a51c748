//! What a preset adds to the general sink: credentials, signatures, limits, and the meaning of a provider's answers.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Request;
use reqwest::header::{HeaderName, HeaderValue};
use secrecy::ExposeSecret as _;

use super::answer::{self, Answer, Verdict};
use super::gate::Gate;
use super::request::IDEMPOTENCY_KEY;
use super::signature::{self, Keys};
use crate::secret::Secret;
use crate::sink::{Class, Failure};

const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// Reads the meaning of an answer's status and body.
pub(in crate::sink) type ReadVerdict = fn(u16, &[u8]) -> Option<Verdict>;

/// See the module.
#[derive(Debug, Default)]
pub(in crate::sink) struct Preset {
    /// User name and secret of Basic authentication.
    pub(in crate::sink) credentials: Option<(String, Secret)>,
    /// Reads a provider's own error codes out of a 4xx answer; `None` leaves the general meaning of the status.
    pub(in crate::sink) verdict: Option<ReadVerdict>,
    /// Files of the secrets that sign each request; none, no signature.
    pub(in crate::sink) signed_by: Vec<PathBuf>,
    /// Where connections may go; anywhere without it.
    pub(in crate::sink) gate: Option<Gate>,
    /// The most bytes of a body.
    pub(in crate::sink) body_limit: Option<usize>,
}

/// The secrets of one publication.
#[derive(Debug)]
pub(super) struct Seal {
    pub(super) authorization: Option<HeaderValue>,
    keys: Option<Keys>,
}

impl Preset {
    /// Reads the secrets, each time again, so that a rotated one needs no restart.
    pub(super) fn seal(&self) -> Result<Seal, Failure> {
        let authorization = self.credentials.as_ref().map(|(user, secret)| basic(user, secret)).transpose()?;
        let keys = (!self.signed_by.is_empty()).then(|| Keys::read(&self.signed_by)).transpose();
        Ok(Seal { authorization, keys: keys.map_err(|why| unreadable(why, SIGNING))? })
    }

    /// Whether a body of so many bytes may go out; asked before it is made, where its length is known.
    pub(super) fn fits(&self, bytes: usize) -> Result<(), Failure> {
        let Some(limit) = self.body_limit.filter(|limit| bytes > *limit) else { return Ok(()) };
        let message = format!("The body has {bytes} bytes, body_limit allows {limit}");
        let hint = "Send less of the row by a template of the body, or raise body_limit";
        Err(Failure::of(Class::Poison, "message_too_large", message, hint))
    }

    /// Whether the request may go out to `target`.
    pub(super) fn admit(&self, request: &Request, target: &str) -> Result<(), Failure> {
        self.fits(request.body().and_then(reqwest::Body::as_bytes).map_or(0, <[u8]>::len))?;
        let blocked = self.gate.as_ref().and_then(|gate| gate.check(request.url()).err());
        match blocked.and_then(|blocked| answer::classify(Answer::Blocked(blocked.to_string()), target)) {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }
}

impl Seal {
    /// Signs the request as it is, for this moment: each attempt has its own time and keeps its id.
    pub(super) fn sign(&self, request: &mut Request, now: SystemTime) -> Result<(), Failure> {
        let Some(keys) = &self.keys else { return Ok(()) };
        let key = request.headers().get(IDEMPOTENCY_KEY).and_then(|key| key.to_str().ok()).unwrap_or_default();
        let id = signature::id(key);
        let timestamp = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs().to_string();
        let body = request.body().and_then(reqwest::Body::as_bytes).unwrap_or_default();
        let signature = keys.sign(&id, &timestamp, body);
        for (name, value) in [(ID, id), (TIMESTAMP, timestamp), (SIGNATURE, signature)] {
            let mut value = HeaderValue::try_from(value)
                .map_err(|_| unreadable("a signature cannot be sent in a header".to_owned(), SIGNING))?;
            value.set_sensitive(true);
            request.headers_mut().insert(name, value);
        }
        Ok(())
    }
}

fn basic(user: &str, secret: &Secret) -> Result<HeaderValue, Failure> {
    let wrong = |what: String| match secret {
        Secret::File(path) => unreadable(format!("{} {what}", path.display()), TOKEN),
        Secret::Value(_) => unreadable(format!("it {what}"), TOKEN),
    };
    let secret = secret.read().map_err(|error| wrong(format!("cannot be read: {error}")))?;
    if secret.expose_secret().is_empty() {
        return Err(wrong("is empty".to_owned()));
    }
    let encoded = STANDARD.encode(format!("{user}:{}", secret.expose_secret()));
    let mut value = HeaderValue::try_from(format!("Basic {encoded}"))
        .map_err(|_| wrong("cannot be sent in a header".to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}

/// The keys of the configuration that name the files.
const TOKEN: &str = "relay.sink.sms.auth_token_file";
const SIGNING: &str = "relay.sink.webhook.secret_file or secret_files";

fn unreadable(why: String, key: &str) -> Failure {
    let hint = "Make the secret's file readable for the relay's user, with the secret as its only content, then \
                `outbox-relay cursor resume NAME`";
    Failure::of(Class::Fatal, "secret_unreadable", format!("The secret of {key} cannot be used: {why}"), hint)
}
