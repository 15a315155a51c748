//! The judge convicts of each fault alone, and acquits without it.

use super::*;

/// Rows 1 to 6; 2 and 4 are of the refused number, 6 comes when it is taken again.
fn rows() -> Vec<Row> {
    let numbers = ["a", "bad", "b", "bad", "a", "bad"];
    numbers
        .iter()
        .enumerate()
        .map(|(n, number)| Row { id: (n + 1).to_string(), number: (*number).to_owned() })
        .collect()
}

fn figures(rows: &[Row], accepted: &[&str], listed: (usize, usize)) -> Figures {
    let accepted: Vec<String> = accepted.iter().map(|id| (*id).to_owned()).collect();
    Figures::of(rows, &accepted, "bad", listed)
}

fn sound() -> Findings {
    let (all, before) = (rows(), &rows()[..5]);
    Findings {
        refused: "bad".to_owned(),
        refused_rows: 2,
        meanwhile: [
            figures(before, &["1"], (0, 0)),
            figures(before, &["1", "3", "5"], (2, 0)),
            figures(before, &["1", "3", "5"], (1, 2)),
        ],
        end: [
            figures(&all, &["1", "2", "3", "4", "5", "6"], (0, 0)),
            figures(&all, &["1", "3", "5", "6", "2", "4"], (0, 0)),
            figures(&all, &["1", "3", "5", "2", "4", "6"], (0, 0)),
        ],
        kills: 0,
    }
}

#[test]
fn each_policy_as_promised_passes() {
    let sound = sound();
    assert_eq!(sound.verdict(), Verdict::Pass, "{:?}", sound.promises());
    assert_eq!((sound.meanwhile[0].waiting, sound.meanwhile[0].waiting_others), (4, 2));
    assert_eq!((sound.meanwhile[2].waiting, sound.meanwhile[2].waiting_others), (1, 0));
    assert_eq!(sound.end[1].out_of_order, ["bad"]);
}

#[test]
fn nothing_refused_or_passed_proves_nothing() {
    let in_order =
        Findings { end: [(); 3].map(|()| figures(&rows(), &["1", "2", "3", "4", "5", "6"], (0, 0))), ..sound() };
    assert_eq!(in_order.verdict(), Verdict::Undecided);
}

#[test]
fn others_that_wait_or_letters_that_are_missing_are_convicted() {
    let before = &rows()[..5];
    for (relay, accepted, listed) in [
        (0, &["1"][..], (1, 0)),
        (0, &["1", "3", "5"], (0, 0)),
        (1, &["1", "3"], (2, 0)),
        (1, &["1", "3", "5"], (1, 0)),
        (2, &["1", "3"], (1, 2)),
        (2, &["1", "3", "5"], (2, 2)),
        (2, &["1", "3", "5"], (1, 1)),
    ] {
        let mut findings = sound();
        findings.meanwhile[relay] = figures(before, accepted, listed);
        assert_eq!(findings.verdict(), Verdict::Fail, "{relay}: {accepted:?}, {listed:?}");
    }
}

#[test]
fn loss_disorder_phantoms_and_what_stays_are_convicted_at_each_relay() {
    let order = [["1", "2", "3", "4", "5", "6"], ["1", "3", "5", "6", "2", "4"], ["1", "3", "5", "2", "4", "6"]];
    for (relay, order) in order.iter().enumerate() {
        let lost = order[..5].to_vec();
        let phantom = [order.as_slice(), &["7"]].concat();
        let disordered: Vec<&str> = order
            .iter()
            .map(|id| {
                if *id == "1" {
                    "5"
                } else if *id == "5" {
                    "1"
                } else {
                    id
                }
            })
            .collect();
        for (accepted, listed) in [
            (lost, (0, 0)),
            (phantom, (0, 0)),
            (disordered, (0, 0)),
            (order.to_vec(), (1, 0)),
            (order.to_vec(), (0, 1)),
        ] {
            let mut findings = sound();
            findings.end[relay] = figures(&rows(), &accepted, listed);
            assert_eq!(findings.verdict(), Verdict::Fail, "{relay}: {accepted:?}, {listed:?}");
        }
    }
}

#[test]
fn refused_number_out_of_order_is_right_for_dead_letters_only() {
    for relay in [0, 2] {
        let mut findings = sound();
        findings.end[relay] = figures(&rows(), &["1", "3", "5", "6", "2", "4"], (0, 0));
        assert_eq!(findings.verdict(), Verdict::Fail);
    }
}

#[test]
fn repeat_needs_a_kill_and_no_more_come_than_were_on_their_way() {
    let repeated = |times: usize, kills| {
        let mut findings = Findings { kills, ..sound() };
        let again = std::iter::repeat_n("3", times);
        findings.end[2] =
            figures(&rows(), &["1", "3", "5", "2", "4", "6"].into_iter().chain(again).collect::<Vec<_>>(), (0, 0));
        findings.verdict()
    };
    assert_eq!(
        (repeated(1, 0), repeated(IN_FLIGHT, 1), repeated(IN_FLIGHT + 1, 1)),
        (Verdict::Fail, Verdict::Pass, Verdict::Fail)
    );
}
