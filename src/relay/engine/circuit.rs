//! The sink's circuit: while a receiver is out, one relay at a time tries it, with one message, and rarely.
//!
//! The circuit's state stands in `outbox.cursor_status`, so that all replicas see the same one. It opens after some
//! failures in a row; it closes with the first success, with a failure that is no outage, or when no row waits any more.
//! Nothing is counted against any message meanwhile.

use std::time::Duration;

use crate::cursor::Circuit;
use crate::position::Timestamp;

/// So many failures of a relay in a row, the last of them an outage of its sink, open the circuit.
pub(in crate::relay) const OPENS_AFTER: u32 = 3;

/// How long a relay waits whose sink another relay is just trying, or has tried since this one looked.
pub(in crate::relay) const PROBED_BY_ANOTHER: Duration = Duration::from_millis(500);

/// The pause between two tries grows with the outage between these bounds.
const SHORTEST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(10);

/// How long it is, at `now`, until the next try: half of the time that the outage had lasted at the last one.
pub(in crate::relay) fn wait(circuit: &Circuit, now: Timestamp) -> Duration {
    let pause = (circuit.tried_at.since(circuit.opened_at) / 2).clamp(SHORTEST, LONGEST);
    // After a clock that has stepped back the last try lies in the future.
    circuit.tried_at.plus(pause).since(now).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_become_rarer_up_to_a_bound() {
        let at = |seconds: i64| Timestamp::from_pg_micros(seconds * 1_000_000);
        let waits = |tried: i64, now: i64| wait(&Circuit { opened_at: at(100), tried_at: at(tried) }, at(now));
        assert_eq!(waits(100, 100), SHORTEST);
        assert_eq!(waits(104, 104), Duration::from_secs(2));
        assert_eq!(waits(104, 105), Duration::from_secs(1));
        assert_eq!(waits(104, 200), Duration::ZERO);
        assert_eq!(waits(1_000, 1_000), LONGEST);
        assert_eq!(waits(1_000, 200), LONGEST);
    }
}
