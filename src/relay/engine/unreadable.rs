//! What a row that cannot be read means for its relay: it is poison, as a row that the receiver refuses.

use crate::sink::{Class, Failure};
use crate::source::fetch::Unreadable;

const NO_INSTANT: &str = "Give the row a local time that is an instant, or delete it: UPDATE or DELETE, by its id. Until then nothing after it is \
    delivered, because no position can be at it. A CHECK constraint on the column (> '1970-01-01') keeps such rows out.";

const SLOW: &str = "Shorten the row's values, publish fewer columns, store what a cast or a function makes of them, or raise turn.deadline.";

/// The failure of a row. One without a readable id, or without an instant, cannot be passed: no position can be at it.
pub(in crate::relay) fn failure(row: &Unreadable) -> Failure {
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
        Unreadable::Large { bytes, most, .. } => {
            Failure::of(Class::Poison, "row_too_large", message, large(*bytes, *most))
        }
        Unreadable::Id { .. } => Failure::of(
            Class::Fatal,
            "id_not_utf8",
            message,
            "Give the row an id that can be converted to UTF-8: a position and a message need it.",
        ),
        Unreadable::Slow { .. } => Failure::of(Class::Poison, "row_too_slow", message, SLOW),
        Unreadable::NoInstant { .. } => Failure::of(Class::Fatal, "created_at_no_instant", message, NO_INSTANT),
    }
}

/// The most that max_row_bytes may be, in MiB: PostgreSQL makes no value that is longer.
const MOST_MEBIBYTES: u64 = 1_024;

fn large(bytes: u64, most: usize) -> String {
    let needed = bytes.div_ceil(1 << 20);
    if needed > MOST_MEBIBYTES || usize::try_from(bytes).is_ok_and(|bytes| bytes <= most) {
        return "Shorten the row's values, or publish fewer columns: PostgreSQL cannot make this row into one text."
            .to_owned();
    }
    format!(
        "Set [relay.turn] max_row_bytes = \"{needed}MiB\" if each replica has memory for three such rows, or shorten the \
         row's values, or publish fewer columns."
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::{Position, Timestamp};
    use crate::source::fetch::Malformed;

    #[test]
    fn unreadable_row_is_poison_unless_no_position_can_be_at_it() {
        let created_at = Timestamp::from_pg_micros(0);
        let position = Position { created_at, id: Some("7".to_owned()) };
        let reason = Malformed::Long("\"payload\"".to_owned());
        let no_instant = Unreadable::NoInstant {
            table: "public.bookings".to_owned(),
            created_at: "4714-11-24 00:00:00 BC".to_owned(),
            zone: "Etc/GMT-14".to_owned(),
            id: "7".to_owned(),
        };
        let rows = [
            (Unreadable::Malformed { position: position.clone(), reason }, Class::Poison, "row 7"),
            (
                Unreadable::Large { position: position.clone(), bytes: 17 << 20, exact: true, most: 16 << 20 },
                Class::Poison,
                "row 7 takes 17825792 bytes",
            ),
            (
                Unreadable::Slow { position: position.clone(), limit: std::time::Duration::from_secs(3) },
                Class::Poison,
                "row 7 alone is not read within 3s",
            ),
            (Unreadable::Value { position, state: "22021".to_owned() }, Class::Poison, "row 7"),
            (Unreadable::Id { created_at, id: "41ff".to_owned() }, Class::Fatal, "x'41ff'"),
            (no_instant, Class::Fatal, "row 7 of public.bookings has 4714-11-24 00:00:00 BC"),
        ];
        for (row, class, named) in rows {
            let failure = failure(&row);
            assert!(failure.class == class && failure.message.contains(named), "{failure:?}");
            // `cursor why` adds the verbs to a hint that has none.
            assert!(!failure.hint.contains("outbox-relay cursor"), "{failure:?}");
        }
    }
}
