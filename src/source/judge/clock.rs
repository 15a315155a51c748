//! Reads the time out of a column's default.

use super::super::Stream;
use crate::database::quote_literal;

/// What a default takes its time from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clock {
    /// The clock when the row is made.
    Now,
    /// The start of the transaction, or of the client's message.
    TransactionStart,
    /// Something else.
    Unknown,
}

/// Reads a default as `pg_get_expr` prints it, of a column that keeps this many digits of a second.
pub(super) fn source_of(default: &str, config: &Stream, digits: u32) -> Clock {
    let mut text = default.trim().to_owned();
    // A cast to the column's own precision changes nothing; one to less rounds the clock down by more than the margin.
    if let Some((inner, cast)) = text.rsplit_once("::timestamp") {
        let kind = if config.time_zone.is_some() { "without time zone" } else { "with time zone" };
        let kept = cast
            .strip_prefix('(')
            .and_then(|rest| rest.strip_suffix(kind))
            .and_then(|rest| rest.trim_end().strip_suffix(')'))
            .and_then(|kept| kept.parse::<u32>().ok());
        if kept.is_none_or(|kept| kept < digits) {
            return Clock::Unknown;
        }
        text = strip(inner).to_owned();
    }
    let mut clock = strip(&text).to_owned();
    if let Some(zone) = &config.time_zone {
        let suffix = format!(" AT TIME ZONE {}::text", quote_literal(zone).trim());
        match clock.strip_suffix(&suffix) {
            Some(inner) => clock = strip(inner).to_owned(),
            None => return Clock::Unknown,
        }
    }
    match clock.as_str() {
        "clock_timestamp()" => Clock::Now,
        "now()" | "CURRENT_TIMESTAMP" | "transaction_timestamp()" | "statement_timestamp()" => Clock::TransactionStart,
        other => {
            match other.strip_prefix("CURRENT_TIMESTAMP(").and_then(|rest| rest.strip_suffix(')')?.parse::<u32>().ok())
            {
                Some(kept) if kept >= digits => Clock::TransactionStart,
                Some(_) | None => Clock::Unknown,
            }
        }
    }
}

/// Without one pair of parentheses around the whole.
fn strip(text: &str) -> &str {
    let text = text.trim();
    match text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
        Some(inner) if balanced(inner) => inner.trim(),
        _ => text,
    }
}

fn balanced(text: &str) -> bool {
    let mut depth = 0;
    text.chars().all(|letter| {
        depth += match letter {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        depth >= 0
    })
}
