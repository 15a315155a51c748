//! What the provider does to a request: the same for the same seed, whatever the replicas do.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use crate::demo::provider::{Answer, Request};

/// Of a hundred first requests: so many are refused, so many are accepted and never answered, so many are lost on
/// the way, so many are answered late.
const REFUSED: u8 = 8;
const HANGING: u8 = 4;
const LOST: u8 = 2;
const LATE: u8 = 15;

/// An answer after so long is late.
pub(super) const LATE_FROM: Duration = Duration::from_millis(300);

/// The answer while the play lasts. A third request is always well: the play is to end.
pub(super) fn answer(seed: u64, request: &Request) -> Answer {
    let mut hasher = DefaultHasher::new();
    (seed, &request.key, request.attempt).hash(&mut hasher);
    let mut random = fastrand::Rng::with_seed(hasher.finish());
    let draw = random.u8(0..100);
    match request.attempt {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_every_answer_and_each_kind_occurs() {
        let request = |key: usize, attempt| Request {
            at: crate::demo::now(),
            method: "PUT".to_owned(),
            path: "/".to_owned(),
            key: format!("reminders/blue/t{key}"),
            body: String::new(),
            attempt,
        };
        let answers = |seed| (0..300).map(|key| answer(seed, &request(key, 1))).collect::<Vec<_>>();
        assert_eq!(answers(7), answers(7));
        assert_ne!(answers(7), answers(8));
        let slow = |answer: &Answer| matches!(answer, Answer::Late(pause) if *pause >= LATE_FROM);
        for fault in [Answer::Refuse(500), Answer::Hang, Answer::Lose] {
            assert!(answers(7).contains(&fault), "{fault:?}");
        }
        assert!(answers(7).iter().any(slow));
        for key in 0..300 {
            assert!(matches!(answer(7, &request(key, 3)), Answer::Late(pause) if pause < Duration::from_millis(60)));
        }
    }
}
