//! Watches whether the database's clock is behind a cursor's last advance, look by look. Pure but for the time between two looks.

use std::time::Instant;

use crate::cursor::ClockStep;
use crate::position::Timestamp;

/// See the module.
#[derive(Debug, Default)]
pub(in crate::relay) struct ClockWatch {
    looked: Option<Instant>,
    step: Option<ClockStep>,
}

/// What a look has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::relay) enum ClockNews {
    /// The clock is behind the last advance.
    Behind(ClockStep),
    /// It is no longer.
    Passed(ClockStep),
}

impl ClockWatch {
    /// Takes a look in, made at `now`, which found the clock `behind` the last advance: the clock and that advance's. None
    /// when nothing has changed.
    pub(in crate::relay) fn look(&mut self, behind: Option<(Timestamp, Timestamp)>, now: Instant) -> Option<ClockNews> {
        // The step took place since the look before: so much may have been stamped before this one.
        let unseen = self.looked.replace(now).map(|looked| now.saturating_duration_since(looked)).unwrap_or_default();
        match (behind, self.step) {
            (Some((clock, to)), known) if known.is_none_or(|known| known.to != to) => {
                let step = ClockStep { from: clock.minus(unseen), to };
                self.step = Some(step);
                Some(ClockNews::Behind(step))
            }
            (None, Some(step)) => {
                self.step = None;
                Some(ClockNews::Passed(step))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn step_begins_no_later_than_the_look_before_and_is_told_once_at_each_end() {
        let at = |millis: i64| Timestamp::from_pg_micros(millis * 1_000);
        let (mut watch, begun) = (ClockWatch::default(), Instant::now());
        assert_eq!(watch.look(None, begun), None);
        let step = ClockStep { from: at(800), to: at(5_000) };
        let later = begun + Duration::from_millis(200);
        assert_eq!(watch.look(Some((at(1_000), at(5_000))), later), Some(ClockNews::Behind(step)));
        assert_eq!(watch.look(Some((at(1_200), at(5_000))), later), None);
        assert_eq!(watch.look(None, later), Some(ClockNews::Passed(step)));
        assert_eq!(watch.look(None, later), None);
    }
}
