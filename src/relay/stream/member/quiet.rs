//! The memory of a turn that found nothing.

use std::time::{Duration, Instant};

use crate::position::Position;

/// That a turn found nothing to read, although the newest row is not the one at the position.
///
/// The turn's snapshot is the evidence, and it ages: so the memory ends after a second, and the next turn looks again. Where
/// that finds nothing either (the row at the position was deleted, say), the following memories last longer.
#[derive(Debug)]
pub(in crate::relay) struct Quiet {
    position: Option<Position>,
    newest: Option<Position>,
    pub(super) until: Instant,
    pub(super) lasts: Duration,
}

impl Quiet {
    const FIRST: Duration = Duration::from_secs(1);
    const LONGEST: Duration = Duration::from_secs(60);

    /// Begins with a turn, after the memory of the turn before.
    pub(in crate::relay) fn begin(
        before: Option<Self>,
        position: Option<&Position>,
        newest: Option<&Position>,
    ) -> Self {
        let again = before.filter(|quiet| quiet.is_of(position, newest));
        let lasts = again.map_or(Self::FIRST, |quiet| (quiet.lasts * 4).min(Self::LONGEST));
        Self { position: position.cloned(), newest: newest.cloned(), until: Instant::now() + lasts, lasts }
    }

    pub(super) fn is_of(&self, position: Option<&Position>, newest: Option<&Position>) -> bool {
        self.position.as_ref() == position && self.newest.as_ref() == newest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::Timestamp;

    fn at(micros: i64) -> Option<Position> {
        Some(Position { created_at: Timestamp::from_pg_micros(micros), id: Some("1".to_owned()) })
    }

    // Guarantee: horizon.rewrite-idle
    #[test]
    fn quiet_memory_ends_after_a_second_and_grows_when_confirmed() {
        let begin = |before, newest: i64| Quiet::begin(before, at(1).as_ref(), at(newest).as_ref());
        let first = begin(None, 2);
        assert_eq!(first.lasts, Duration::from_secs(1));
        assert!(first.until <= Instant::now() + Duration::from_secs(1));
        let second = begin(Some(first), 2);
        assert_eq!(second.lasts, Duration::from_secs(4));
        let tenth = (0..8).fold(second, |before, _| begin(Some(before), 2));
        assert_eq!(tenth.lasts, Duration::from_secs(60));
        assert_eq!(begin(Some(tenth), 3).lasts, Duration::from_secs(1), "another row");
    }
}
