//! A position so far beyond the server's clock that no turn has left it there.
//!
//! Promise: a relay whose position was set there by anything but its configuration or an operator's command halts by name. Rows that come up
//! to that instant would be passed, and nothing would say so.
//!
//! A turn advances over rows below the horizon of its scan, which is not above the clock of that scan; an advance records that clock. So a
//! clock that is set back, however far, puts no position beyond the clock of its own last advance.

use std::time::Duration;

use crate::cursor::Standing;
use crate::position::{Position, Timestamp};
use crate::relay::Start;
use crate::relay::setup::prepared::PreparedStream;
use crate::sink::{Class, Failure};

/// A position may lie this far beyond the clock.
const FAR: Duration = Duration::from_secs(3_600);

/// The position of this cursor, where it is too far beyond both the `clock` and that of its last advance.
pub(in crate::relay) fn beyond(standing: &Standing, clock: Timestamp) -> Option<&Position> {
    let latest = standing.observed_at?.max(clock).plus(FAR);
    standing.position.as_ref().filter(|position| position.created_at > latest)
}

/// Whether the relay was configured to begin there.
pub(in crate::relay) fn is_configured(start: Start, position: &Position) -> bool {
    matches!(start, Start::At(instant) if instant == position.created_at)
}

/// Why the relay must not go on from this position.
pub(in crate::relay) fn failure(
    ready: &PreparedStream,
    standing: &Standing,
    position: &Position,
    clock: Timestamp,
) -> Failure {
    let name = &ready.config.name;
    let message = format!(
        "The position {position} lies after the server's clock, {clock}: no turn leaves one there, and no operator's command has set it. \
         Rows that come up to then would be passed"
    );
    let advanced = standing.observed_at.map_or_else(String::new, |at| format!(" (its last advance was at {at})"));
    let hint = format!(
        "Set the position to where the last row was delivered{advanced}: `outbox-relay cursor seek {name} --at INSTANT`. Rows after it are \
         sent, also those that were sent before. Then: `outbox-relay cursor resume {name}`. Find out who may write outbox.cursor."
    );
    Failure::of(Class::Fatal, "position_in_future", message, hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000_000;

    fn at(micros: i64) -> Timestamp {
        Timestamp::from_pg_micros(micros)
    }

    fn standing(position: Option<i64>, observed_at: Option<i64>) -> Standing {
        Standing {
            name: "orders".to_owned(),
            position: position.map(|micros| Position { created_at: at(micros), id: None }),
            observed_at: observed_at.map(at),
            advanced_at: at(0),
            paused: false,
            change: false,
            halted: None,
            state: String::new(),
            advanced_by: None,
            circuit: None,
            redrive: false,
            requested: false,
            in_flight: false,
            rule: None,
            order: None,
            columns: None,
            swept: None,
        }
    }

    #[test]
    fn position_is_beyond_only_after_both_clocks_by_more_than_an_hour() {
        let is_beyond = |position, observed, clock| beyond(&standing(position, observed), at(clock)).is_some();
        assert!(is_beyond(Some(5 * HOUR), Some(HOUR), 2 * HOUR));
        assert!(!is_beyond(Some(3 * HOUR), Some(HOUR), 2 * HOUR), "an hour is allowed");
        assert!(!is_beyond(Some(5 * HOUR), Some(5 * HOUR), 0), "the clock was set back since the last advance");
        assert!(!is_beyond(Some(5 * HOUR), None, 0), "it has not advanced yet: it is where it was created");
        assert!(!is_beyond(None, Some(0), 0));
    }

    #[test]
    fn configured_start_is_no_foreign_position() {
        let position = Position { created_at: at(5 * HOUR), id: None };
        assert!(is_configured(Start::At(at(5 * HOUR)), &position));
        assert!(!is_configured(Start::At(at(HOUR)), &position) && !is_configured(Start::Now, &position));
    }
}
