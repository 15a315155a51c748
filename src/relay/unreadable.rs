//! What a row that cannot be read means for its relay: it is poison, as a row that the receiver refuses.

use crate::sink::{Class, Failure};
use crate::source::fetch::Unreadable;

/// The failure of a row. One without a readable id is nobody's to pass: no position can stand at it.
pub(super) fn failure(row: &Unreadable) -> Failure {
    let message = row.to_string();
    match row {
        Unreadable::Malformed { .. } => Failure::of(
            Class::Poison,
            "value_malformed",
            message,
            "Correct the row, or publish other columns. If the value is sound, report a defect with the table's definition.",
        ),
        Unreadable::Value { .. } => Failure::of(
            Class::Poison,
            "value_not_utf8",
            message,
            "Correct the row's value in the database, or publish other columns.",
        ),
        Unreadable::Id { .. } => Failure::of(
            Class::Fatal,
            "id_not_utf8",
            message,
            "Give the row an id that can be converted to UTF-8: a position and a message need it.",
        ),
    }
}
