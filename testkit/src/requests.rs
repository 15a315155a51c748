//! The scenario requests: callers that all ask for the same, many times and at once; mails to a provider that honours
//! idempotency keys, texts to one that does not; both fail, hang, lose and answer late, and replicas are killed and start
//! again with another wording. The verdict comes from what the providers have, what the ledger says, and what callers were
//! told.
//!
//! One request is made for a key. A mail is sent again after an outcome that nobody knows, with the same key and body: none
//! is missing. A text is not: none comes twice, and what is missing stands in the list of unknown outcomes.

mod callers;
mod judge;
mod ledger;
mod play;
mod scene;
mod summary;

pub(super) use scene::Scene;

/// The relay whose provider honours idempotency keys, and its template.
const MAILS: (&str, &str) = ("mails", "welcome");
/// The relay whose provider does not, and its template.
const TEXTS: (&str, &str) = ("texts", "code");
