//! What is wrong, and what follows from it.

use std::path::Path;
use std::time::Duration;

use super::MISMATCH;
use super::misfit::Misfit;
use crate::sink::{Class, Failure, Subject};
use crate::visible;

/// Of what a registry or a library says, so many bytes are repeated.
const WORDS: usize = 500;

/// Words of others, safe to show.
pub(super) fn words(of: &str) -> String {
    visible::words(of.trim(), WORDS)
}

/// The registry gives no answer that can be used: it is asked again, and nothing is lost.
pub(super) fn unavailable(url: &str, why: &str, retry_after: Option<Duration>) -> Failure {
    let message = format!("The schema registry {url} gives no schema: {why}");
    let hint = "Check that the registry is up, that [schema_registry] url is right to its path, and that it can be reached from here; \
                rows whose schema is known are published meanwhile";
    let failure = Failure::of(Class::Retry, "schema_registry_unavailable", message, hint).about(Subject::Elsewhere);
    Failure { retry_after, ..failure }
}

/// The registry refuses the relay.
pub(super) fn denied(url: &str, why: &str) -> Failure {
    let message = format!("The schema registry {url} refuses the relay: {why}");
    let hint = "Correct url and the credentials in [schema_registry], or let the relay read there, and write if it registers its schema, then \
                `outbox-relay cursor resume NAME`";
    Failure::of(Class::Fatal, "schema_registry_refused", message, hint).about(Subject::Elsewhere)
}

/// The registry has no such schema.
pub(super) fn missing(subject: &str, said: &str) -> Failure {
    let message = format!("The schema registry has no such schema of subject {subject}: {}", words(said));
    let hint = "Register the schema, or correct subject, version or schema_file; with register = true the relay registers the schema of \
                schema_file itself. Then `outbox-relay cursor resume NAME`, if the relay has halted";
    Failure::of(Class::Fatal, "schema_missing", message, hint).about(Subject::Elsewhere)
}

/// Whether a registry has said that there is no such schema.
pub(super) fn is_missing(failure: &Failure) -> bool {
    failure.code == "schema_missing"
}

/// The registry does not take the schema.
pub(super) fn rejected(subject: &str, said: &str) -> Failure {
    let message = format!("The schema registry does not take the schema for subject {subject}: {}", words(said));
    let hint = "Make the schema of schema_file one that the subject's compatibility allows: give new fields defaults, for example. Then \
                `outbox-relay cursor resume NAME`, if the relay has halted";
    Failure::of(Class::Fatal, "schema_refused", message, hint).about(Subject::Elsewhere)
}

/// The relay cannot write by the schema.
pub(super) fn unusable(subject: &str, what: &str) -> Failure {
    let message = format!("Nothing can be written by the schema of subject {subject}: {}", words(what));
    let hint = "Correct the schema, or format, record or message in the relay's section, then `outbox-relay cursor resume NAME`, if the \
                relay has halted";
    Failure::of(Class::Fatal, "schema_unusable", message, hint).about(Subject::Elsewhere)
}

/// A file that the configuration names cannot be used.
pub(super) fn unreadable(path: &Path, key: &str, why: &str) -> Failure {
    let message = format!("{} ({key}) cannot be used: {why}", path.display());
    let hint =
        "Make the file readable for the relay's user, then `outbox-relay cursor resume NAME`, if the relay has halted";
    Failure::of(Class::Fatal, "schema_file_unreadable", message, hint).about(Subject::Elsewhere)
}

/// The row cannot be written by its schema.
pub(super) fn mismatch(subject: &str, id: u32, misfit: &Misfit) -> Failure {
    let message = format!("The row does not fit the schema of subject {subject} (id {id}): {misfit}");
    let hint = "Correct the row, or give the relay a schema that it fits: with version = \"latest\" register one; else change schema_file or \
                version, and restart. `unknown = \"ignore\"` leaves out what the schema does not have";
    Failure::of(Class::Poison, MISMATCH, message, hint).about(Subject::Message)
}
