//! What a provider does to a request: the same for the same seed, whatever the replicas do.

use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use serde::Serialize;

use super::provider::{Answer, Received};

/// Of a hundred first requests: so many are refused, so many are accepted and never answered, so many are lost on
/// the way, so many are answered late.
const REFUSED: u8 = 8;
const HANGING: u8 = 4;
const LOST: u8 = 2;
const LATE: u8 = 15;

/// An answer after so long is late.
const LATE_FROM: Duration = Duration::from_millis(300);

/// What a provider did to requests.
#[derive(Debug, Default, Serialize)]
pub(super) struct Faults {
    refused: usize,
    hung: usize,
    lost: usize,
    late: usize,
}

/// The answer while the play lasts, to a request about something. A third one is always well: the play is to end.
pub(super) fn answer(seed: u64, about: &str, attempt: usize) -> Answer {
    let mut hasher = DefaultHasher::new();
    (seed, about, attempt).hash(&mut hasher);
    let mut random = fastrand::Rng::with_seed(hasher.finish());
    let draw = random.u8(0..100);
    match attempt {
        1 if draw < REFUSED => Answer::Refuse(500),
        1 if draw < REFUSED + HANGING => Answer::Hang,
        1 if draw < REFUSED + HANGING + LOST => Answer::Lose,
        1 | 2 if draw < REFUSED + HANGING + LOST + LATE => {
            Answer::Late(LATE_FROM + Duration::from_millis(random.u64(0..600)))
        }
        // Never at once: a kill shall find requests on their way.
        _ => Answer::Late(Duration::from_millis(random.u64(10..60))),
    }
}

impl Faults {
    pub(super) fn of(received: &[Received]) -> Self {
        let mut faults = Self::default();
        for one in received {
            match one.answer {
                Answer::Refuse(_) => faults.refused += 1,
                Answer::Hang => faults.hung += 1,
                Answer::Lose => faults.lost += 1,
                Answer::Late(pause) if pause >= LATE_FROM => faults.late += 1,
                Answer::Late(_) | Answer::Accept => {}
            }
        }
        faults
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { refused, hung, lost, late } = self;
        write!(f, "refused {refused} requests, answered {hung} never and {late} late, and lost {lost}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_every_answer_and_each_kind_occurs() {
        let about = |number| format!("reminders/blue/t{number}");
        let answers = |seed| (0..300).map(|number| answer(seed, &about(number), 1)).collect::<Vec<_>>();
        assert_eq!(answers(7), answers(7));
        assert_ne!(answers(7), answers(8));
        let slow = |answer: &Answer| matches!(answer, Answer::Late(pause) if *pause >= LATE_FROM);
        for fault in [Answer::Refuse(500), Answer::Hang, Answer::Lose] {
            assert!(answers(7).contains(&fault), "{fault:?}");
        }
        assert!(answers(7).iter().any(slow));
        for number in 0..300 {
            let third = answer(7, &about(number), 3);
            assert!(matches!(third, Answer::Late(pause) if pause < Duration::from_millis(60)));
        }
    }
}
