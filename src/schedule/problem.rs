//! Why a schedule cannot be planned, in words for who wrote it.

/// What is wrong with a schedule: a stable code, and one line that names the part, its value and what fixes it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Problem {
    /// For programs: `rule`, `time_zone`, `starts_at`, `never`, `beyond` or `cost`.
    pub code: &'static str,
    /// For people: one line.
    pub message: String,
}

impl Problem {
    pub(super) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// A rule that cannot be read.
    pub(super) fn rule(message: impl Into<String>) -> Self {
        Self::new("rule", message)
    }
}

/// A piece of somebody's text for a message: one line, no control characters, not long.
pub(super) fn shown(text: &str) -> String {
    let short: String = text.chars().take(40).collect();
    let dots = if short.len() < text.len() { "…" } else { "" };
    format!("{}{dots}", short.escape_debug())
}
