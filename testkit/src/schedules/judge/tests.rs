//! The judge convicts of each fault alone, and acquits without it.

use super::super::lateness::{self, Excuse};
use super::super::metronome::Beat;
use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_unix_micros(second * 1_000_000)
}

fn occurrence(tenant: &str, schedule: &str, second: i64) -> Occurrence {
    Occurrence { tenant: tenant.to_owned(), schedule: schedule.to_owned(), planned: at(second) }
}

fn action(of: &Occurrence, id: &str, status: &str) -> Action {
    Action { of: of.clone(), id: id.to_owned(), status: status.to_owned() }
}

fn receipt(of: &Occurrence, id: &str, millis: u64) -> Receipt {
    Receipt { of: of.clone(), id: id.to_owned(), at: of.planned.plus(Duration::from_millis(millis)), accepted: true }
}

/// A play: two instants of one schedule, the second of which a killed replica had in hand; one that is not to be retried
/// and was interrupted; one of the tenant that hangs, and one that was skipped behind it.
fn honest() -> Truth {
    let [a, b] = [10, 20].map(|second| occurrence("blue", "ticks", second));
    let c = occurrence("green", "not again", 20);
    let [d, e] = [10, 11].map(|second| occurrence("red", "hangs", second));
    let expected = [(&a, Care::Retry), (&b, Care::Retry), (&c, Care::Fail), (&d, Care::Hangs), (&e, Care::Hangs)];
    Truth {
        expected: expected.into_iter().map(|(of, care)| Expected { of: of.clone(), care }).collect(),
        actions: vec![
            action(&a, "1", "completed"),
            action(&b, "2", "completed"),
            action(&c, "3", "failed"),
            action(&d, "4", "failed"),
            action(&e, "5", "skipped"),
        ],
        receipts: vec![receipt(&a, "1", 20), receipt(&b, "2", 30), receipt(&b, "2", 10_400), receipt(&c, "3", 40)],
        held: ["2", "3"].map(|id| (id.to_owned(), at(20).plus(Duration::from_millis(100)))).into(),
    }
}

fn judged(truth: &Truth) -> Verdict {
    let none = || Lateness { judged: 1, ..Lateness::default() };
    verdict(&truth.counts(|_| true), &none(), true, true)
}

#[test]
fn an_honest_play_passes_and_is_counted() {
    let truth = honest();
    assert_eq!(judged(&truth), Verdict::Pass);
    let expected = Counts { expected: 5, completed: 2, failed: 2, skipped: 1, repeated: 1, ..Counts::default() };
    assert_eq!(truth.counts(|_| true), expected);
    assert_eq!(
        truth.counts(|tenant| tenant == "red"),
        Counts { expected: 2, failed: 1, skipped: 1, ..Counts::default() }
    );
    assert_eq!(truth.taken_up(), Some(Duration::from_millis(10_300)));
}

/// What is done to an honest play, and what shall be counted for it.
type Forgery = (fn(&mut Truth), fn(&Counts) -> usize);

// Guarantee: schedules.demo-checker
#[test]
fn each_fault_is_counted_once_and_fails() {
    let forgeries: [Forgery; 12] = [
        (|truth| drop(truth.actions.remove(0)), |counts| counts.lost),
        (|truth| drop(truth.actions.remove(4)), |counts| counts.lost),
        (|truth| "due".clone_into(&mut truth.actions[0].status), |counts| counts.lost),
        (|truth| drop(truth.receipts.remove(0)), |counts| counts.lost),
        (|truth| truth.receipts[0].accepted = false, |counts| counts.lost),
        (|truth| truth.actions.push(Action { id: "9".to_owned(), ..truth.actions[0].clone() }), |counts| counts.twice),
        (
            |truth| truth.receipts.push(Receipt { id: "9".to_owned(), ..truth.receipts[0].clone() }),
            |counts| counts.twice,
        ),
        (|truth| drop(truth.expected.remove(4)), |counts| counts.phantom),
        (|truth| truth.receipts[0].at = at(9), |counts| counts.early),
        (|truth| truth.receipts.push(truth.receipts[0].clone()), |counts| counts.unexplained),
        (|truth| truth.receipts.push(truth.receipts[3].clone()), |counts| counts.unexplained),
        (|truth| "skipped".clone_into(&mut truth.actions[1].status), |counts| counts.wrong),
    ];
    for (number, (forge, count)) in forgeries.into_iter().enumerate() {
        let mut truth = honest();
        forge(&mut truth);
        assert_eq!(count(&truth.counts(|_| true)), 1, "forgery {number}");
        assert_eq!(judged(&truth), Verdict::Fail, "forgery {number}");
    }
}

#[test]
fn an_action_that_fails_though_no_kill_explains_it_is_wrong() {
    let mut truth = honest();
    truth.held.remove("3");
    assert_eq!((truth.counts(|_| true).wrong, judged(&truth)), (1, Verdict::Fail));
}

#[test]
fn a_repeat_that_no_kill_explains_fails() {
    let mut truth = honest();
    truth.held.remove("2");
    assert_eq!((truth.counts(|_| true).unexplained, judged(&truth)), (1, Verdict::Fail));
}

#[test]
fn an_untold_problem_fails_and_what_proves_nothing_is_undecided() {
    let (truth, lateness) = (honest(), Lateness { judged: 1, ..Lateness::default() });
    let all = truth.counts(|_| true);
    assert_eq!(verdict(&all, &lateness, false, true), Verdict::Fail);
    assert_eq!(verdict(&all, &lateness, true, false), Verdict::Undecided);
    assert_eq!(verdict(&all, &Lateness::default(), true, true), Verdict::Undecided);
    assert_eq!(verdict(&Counts::default(), &lateness, true, true), Verdict::Undecided);
}

// Guarantee: schedules.demo-checker
#[test]
fn what_is_late_by_more_than_a_second_fails_but_for_an_excuse_or_a_stall_of_the_machine() {
    let mut truth = honest();
    let on_time = lateness::judge(&truth, &[], &[]);
    assert_eq!((on_time.judged, on_time.excused, on_time.late), (3, 0, 0));
    assert_eq!((on_time.p50, on_time.max), (30.0, 40.0));
    truth.receipts[0].at = at(10).plus(Duration::from_millis(1_400));
    let late = lateness::judge(&truth, &[], &[]);
    assert_eq!((late.judged, late.late, late.max), (3, 1, 1_400.0));
    assert_eq!(verdict(&truth.counts(|_| true), &late, true, true), Verdict::Fail);

    let of = |tenant: &str| Some((tenant.to_owned(), "ticks".to_owned()));
    let excuse = |tenant, from| [Excuse { from: at(from), to: at(12), of: tenant }];
    let excused = lateness::judge(&truth, &excuse(of("blue"), 9), &[]);
    assert_eq!((excused.judged, excused.excused, excused.late), (2, 1, 0));
    assert_eq!(lateness::judge(&truth, &excuse(None, 9), &[]).late, 0);
    assert_eq!(lateness::judge(&truth, &excuse(of("green"), 9), &[]).late, 1, "another's");
    assert_eq!(lateness::judge(&truth, &excuse(None, 11), &[]).late, 1, "another time's");

    let beat = |due| [Beat { due: at(due), late: Duration::from_millis(500) }];
    assert_eq!(lateness::judge(&truth, &[], &beat(11)).late, 0);
    assert_eq!(lateness::judge(&truth, &[], &beat(12)).late, 1, "a stall at another time");
}
