//! The judge convicts of each fault alone, and acquits without it.

use super::*;

/// 1, 3 and 5 go to one number, 2 and 4 to another.
fn rows() -> Vec<Row> {
    (1..=5).map(|id| Row { id, phone: if id % 2 == 1 { "a" } else { "b" }.to_owned() }).collect()
}

/// In this order; a negative number is one that was not accepted.
fn figures(ids: &[i64]) -> Figures {
    let arrival = |id: &i64| Arrival { id: id.abs(), accepted: *id > 0, answered: true };
    Figures::of(&rows(), &ids.iter().map(arrival).collect::<Vec<_>>())
}

fn sound() -> Findings {
    Findings { relays: [figures(&[3, 1, 2, 4, 5]), figures(&[2, 1, 3, 4, 5]), figures(&[-1, 2, 4, 1, 3, 5])], kills: 0 }
}

#[test]
fn order_of_each_number_passes_and_is_proven_by_one_without() {
    assert_eq!(sound().verdict(), Verdict::Pass, "{:?}", sound().promises());
    let Figures { overtaking, numbers, .. } = sound().relays[0];
    assert_eq!((overtaking, numbers), (1, 1));
    let mut calm = sound();
    calm.relays[0] = figures(&[1, 2, 3, 4, 5]);
    assert_eq!(calm.verdict(), Verdict::Undecided, "nothing had to be kept");
}

#[test]
fn relays_with_lanes_are_convicted_of_each_fault() {
    for relay in [1, 2] {
        for wrong in [
            // Lost, made up, out of order, sent while an earlier one was refused, and twice.
            &[1, 2, 3, 4][..],
            &[1, 2, 3, 4, 5, 6],
            &[3, 1, 2, 4, 5],
            &[-1, -3, 1, 2, 3, 4, 5],
            &[1, 2, 3, 4, 5, 5],
        ] {
            let mut findings = sound();
            findings.relays[relay] = figures(wrong);
            assert_eq!(findings.verdict(), Verdict::Fail, "{relay}: {wrong:?}");
        }
    }
}

#[test]
fn relay_without_lanes_keeps_no_order_and_all_else() {
    for wrong in [&[3, 1, 2, 4][..], &[3, 1, 2, 4, 5, 6], &[3, 1, 2, 4, 5, 5]] {
        let mut findings = sound();
        findings.relays[0] = figures(wrong);
        assert_eq!(findings.verdict(), Verdict::Fail, "{wrong:?}");
    }
}

#[test]
fn repeats_are_explained_by_kills_and_by_answers_that_did_not_come() {
    let repeated = |times: usize, kills| {
        let again = std::iter::repeat_n(5, times);
        let mut findings = Findings { kills, ..sound() };
        findings.relays[1] = figures(&[1, 2, 3, 4, 5].into_iter().chain(again).collect::<Vec<_>>());
        findings.verdict()
    };
    assert_eq!(
        (repeated(1, 0), repeated(IN_FLIGHT, 1), repeated(IN_FLIGHT + 1, 1)),
        (Verdict::Fail, Verdict::Pass, Verdict::Fail)
    );
    let mut unanswered = sound();
    unanswered.relays[2] = Figures { repeated: 2, unanswered: 2, ..figures(&[1, 2, 3, 4, 5]) };
    assert_eq!(unanswered.verdict(), Verdict::Pass);
}
