//! The judge convicts of each fault alone, and acquits without it.

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_unix_micros(second * 1_000_000)
}

fn row(key: &str, due: i64, marked: bool) -> Row {
    Row { key: key.to_owned(), due: at(due), marked }
}

fn delivery(key: &str, second: i64, answered: bool) -> Delivery {
    Delivery { key: key.to_owned(), at: at(second), answered }
}

fn keys(keys: &[&str]) -> HashSet<String> {
    keys.iter().map(|key| (*key).to_owned()).collect()
}

/// Two due rows, one that was marked before, one that is due later.
fn rows() -> Vec<Row> {
    vec![row("r/1", 10, true), row("r/2", 20, true), row("r/3", 10, true), row("r/4", 99, false)]
}

fn judged(deliveries: &[Delivery], rows: &[Row], held: &[&str], unknown: &[&str]) -> (AtLeastOnce, AtMostOnce) {
    let before = keys(&["r/3"]);
    let truth = Truth { rows, before: &before, end: at(50) };
    (truth.at_least_once(deliveries, &keys(held)), truth.at_most_once(deliveries, &keys(unknown)))
}

fn once() -> Vec<Delivery> {
    vec![delivery("r/1", 10, true), delivery("r/2", 21, true)]
}

#[test]
fn every_due_row_once_and_marked_passes() {
    let (a, b) = judged(&once(), &rows(), &[], &[]);
    assert_eq!((a.counts.due, a.counts.delivered, a.counts.repeated), (2, 2, 0));
    assert_eq!(verdict(&a, &b), Verdict::Pass);
}

#[test]
fn nothing_due_proves_nothing() {
    let (a, b) = judged(&[], &[row("r/4", 99, false)], &[], &[]);
    assert_eq!(verdict(&a, &b), Verdict::Undecided);
}

#[test]
fn a_due_row_that_did_not_arrive_or_has_no_mark_is_convicted() {
    let pass = judged(&once(), &rows(), &[], &[]);
    let (missing, listed) = judged(&once()[..1], &rows(), &[], &["r/2"]);
    assert_eq!((verdict(&missing, &pass.1), verdict(&pass.0, &listed)), (Verdict::Fail, Verdict::Pass));
    let (_, unlisted) = judged(&once()[..1], &rows(), &[], &[]);
    assert_eq!((unlisted.unexplained, verdict(&pass.0, &unlisted)), (1, Verdict::Fail));
    let mut rows = rows();
    rows[1].marked = false;
    let (unmarked, b) = judged(&once(), &rows, &[], &[]);
    assert_eq!((unmarked.unmarked, verdict(&unmarked, &b)), (1, Verdict::Fail));
}

#[test]
fn a_delivery_before_its_time_or_of_a_marked_row_is_convicted() {
    for (wrong, early, phantom) in [("r/4", 1, 0), ("r/3", 0, 1), ("r/9", 0, 1)] {
        let deliveries = [once(), vec![delivery(wrong, 30, true)]].concat();
        let (a, b) = judged(&deliveries, &rows(), &[], &[]);
        assert_eq!((a.counts.early, a.counts.phantom), (early, phantom), "{wrong}");
        assert_eq!(verdict(&a, &b), Verdict::Fail);
    }
    let (a, _) = judged(&[delivery("r/1", 9, true), delivery("r/2", 21, true)], &rows(), &[], &[]);
    assert_eq!(a.counts.early, 1);
}

#[test]
fn a_repeat_needs_a_fault_or_a_kill_and_is_never_right_at_most_once() {
    let again = |answered| vec![delivery("r/1", 10, answered), delivery("r/1", 12, true), delivery("r/2", 21, true)];
    for (answered, held, unexplained) in [(true, &[][..], 1), (false, &[][..], 0), (true, &["r/1"][..], 0)] {
        let (a, b) = judged(&again(answered), &rows(), held, &[]);
        assert_eq!((a.counts.repeated, a.unexplained), (1, unexplained));
        let pass = judged(&once(), &rows(), &[], &[]);
        assert_eq!(verdict(&a, &pass.1) == Verdict::Pass, unexplained == 0);
        assert_eq!(verdict(&pass.0, &b), Verdict::Fail);
    }
}
