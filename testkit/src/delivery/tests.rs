//! The checker must convict every planted fault, and acquit what is no fault.

use proptest::prelude::*;

use super::*;

fn at(micros: i64) -> Timestamp {
    Timestamp::from_pg_micros(micros)
}

/// Rows 0, 1, 2 …; several share an instant, as the id breaks the tie.
fn committed(rows: usize) -> Committed {
    Committed::in_order((0..rows).map(|row| (row.to_string(), created(row))).collect())
}

fn created(row: usize) -> Timestamp {
    at(i64::try_from(row / 3).expect("small"))
}

fn delivery(row: usize) -> Delivery {
    Delivery { id: row.to_string(), created_at: Some(created(row)) }
}

fn one(rows: &[usize]) -> BTreeMap<i32, Vec<Delivery>> {
    BTreeMap::from([(0, rows.iter().map(|&row| delivery(row)).collect())])
}

fn report(rows: usize, delivered: &[usize]) -> Report {
    check(&committed(rows), &one(delivered), &[])
}

#[test]
fn all_rows_once_and_in_order_pass() {
    let report = report(3, &[0, 1, 2]);
    assert_eq!(report, Report { deliveries: 3, distinct: 3, ..Report::default() });
    assert_eq!(verdict(&committed(3), &[&report], false), Verdict::Pass);
}

#[test]
fn a_row_that_never_arrives_is_lost() {
    let report = report(3, &[0, 2]);
    assert_eq!((report.lost.as_slice(), report.distinct), (["1".to_owned()].as_slice(), 2));
    assert_eq!(verdict(&committed(3), &[&report], true), Verdict::Fail);
}

#[test]
fn a_tie_delivered_against_its_id_is_out_of_order() {
    let found = Disorder { stream: 0, id: "0".into(), after: "1".into() };
    assert_eq!(report(3, &[1, 0, 2]).out_of_order, [found]);
}

#[test]
fn a_late_row_is_one_fault_and_does_not_accuse_its_successors() {
    assert_eq!(report(6, &[0, 3, 4, 1, 5]).out_of_order.len(), 1);
    assert_eq!(report(6, &[0, 3, 4, 1, 2, 5]).out_of_order.len(), 2, "both came after 4");
}

#[test]
fn a_replay_is_only_duplicates_when_it_is_contiguous_and_in_order() {
    let report = report(6, &[0, 1, 2, 3, 1, 2, 3, 4, 3, 4, 5]);
    assert_eq!((report.duplicates(), report.holes.len(), report.out_of_order.len()), (5, 0, 0));
    assert_eq!(verdict(&committed(6), &[&report], true), Verdict::Pass);
    assert_eq!(verdict(&committed(6), &[&report], false), Verdict::Fail, "nothing was killed");
}

#[test]
fn a_replay_that_leaves_rows_out_has_a_hole() {
    let hole = |expected: &str, found: &str| Hole { stream: 0, expected: expected.into(), found: found.into() };
    assert_eq!(report(5, &[0, 1, 2, 3, 1, 3, 4]).holes, [hole("2", "3")]);
    assert_eq!(report(5, &[0, 1, 2, 3, 1, 4]).holes, [hole("2", "4")], "broke off");
    assert_eq!(report(4, &[0, 1, 2, 3, 2, 1, 3]).holes, [hole("2", "3")], "backwards, then a jump");
}

#[test]
fn what_nobody_committed_is_a_phantom_also_under_a_committed_id() {
    let altered = Delivery { id: "1".into(), created_at: Some(at(99)) };
    let invented = Delivery { id: "77".into(), created_at: None };
    let streams = BTreeMap::from([(0, vec![delivery(0), altered, invented, delivery(1)])]);
    let report = check(&committed(2), &streams, &[]);
    assert_eq!((report.phantom.as_slice(), report.distinct), (["1".to_owned(), "77".to_owned()].as_slice(), 2));
    assert_eq!(verdict(&committed(2), &[&report], true), Verdict::Fail);
}

#[test]
fn an_id_in_two_streams_has_strayed_and_counts_as_a_duplicate() {
    let streams = BTreeMap::from([(0, vec![delivery(0), delivery(1)]), (1, vec![delivery(1)])]);
    let report = check(&committed(2), &streams, &[]);
    assert_eq!((report.strayed.as_slice(), report.duplicates()), (["1".to_owned()].as_slice(), 1));
}

#[test]
fn a_gap_or_nothing_committed_decides_nothing() {
    let gap = Gap { stream: 0, expected: 1, found: 2 };
    let report = check(&committed(3), &one(&[0, 2]), &[gap]);
    assert_eq!(verdict(&committed(3), &[&report], false), Verdict::Undecided);
    assert_eq!(verdict(&committed(0), &[&Report::default()], false), Verdict::Undecided);
    assert_eq!([Verdict::Pass, Verdict::Fail, Verdict::Undecided].map(Verdict::exit_code), [0, 1, 3]);
}

/// What a faithful relay delivers: every row to a stream of its own choice, with some crashes whose replays begin
/// again at an earlier row of all streams.
fn faithful(streams: i32) -> impl Strategy<Value = (usize, BTreeMap<i32, Vec<Delivery>>)> {
    let rows = proptest::collection::vec((0..streams, proptest::option::weighted(0.1, 1..6_usize)), 2..120);
    rows.prop_map(|rows| {
        let mut delivered: BTreeMap<i32, Vec<Delivery>> = BTreeMap::new();
        let mut publish = |row: usize| delivered.entry(rows[row].0).or_default().push(delivery(row));
        for (row, &(_, crash)) in rows.iter().enumerate() {
            publish(row);
            if let Some(back) = crash {
                (row.saturating_sub(back)..=row).for_each(&mut publish);
            }
        }
        (rows.len(), delivered)
    })
}

fn first_deliveries(deliveries: &[Delivery]) -> Vec<usize> {
    let mut seen = HashSet::new();
    (0..deliveries.len()).filter(|&place| seen.insert(&deliveries[place].id)).collect()
}

proptest! {
    #[test]
    fn a_faithful_relay_is_acquitted((rows, streams) in faithful(3)) {
        let report = check(&committed(rows), &streams, &[]);
        prop_assert!(report.is_faithful() && report.holes.is_empty() && report.strayed.is_empty(), "{report:?}");
        prop_assert_eq!(report.duplicates(), streams.values().map(Vec::len).sum::<usize>() - rows);
        prop_assert_eq!(verdict(&committed(rows), &[&report], true), Verdict::Pass);
    }

    // Guarantee: checker.deliveries
    #[test]
    fn every_row_left_out_is_named_as_lost((rows, mut streams) in faithful(3), pick in any::<prop::sample::Index>()) {
        let lost = pick.index(rows).to_string();
        streams.values_mut().for_each(|deliveries| deliveries.retain(|delivery| delivery.id != lost));
        let report = check(&committed(rows), &streams, &[]);
        prop_assert_eq!(&report.lost, &[lost]);
        prop_assert!(report.out_of_order.is_empty() && report.phantom.is_empty());
    }

    // Guarantee: checker.deliveries
    #[test]
    fn two_first_deliveries_exchanged_are_convicted(
        (rows, mut streams) in faithful(1),
        pick in any::<prop::sample::Index>(),
    ) {
        let deliveries = streams.get_mut(&0).expect("the only stream");
        let firsts = first_deliveries(deliveries);
        let place = pick.index(firsts.len() - 1);
        // Exchanged everywhere, so that the replays agree with the wrong order and do not give it away.
        let (low, high) = (deliveries[firsts[place]].clone(), deliveries[firsts[place + 1]].clone());
        for delivery in deliveries.iter_mut() {
            if *delivery == low { *delivery = high.clone() } else if *delivery == high { *delivery = low.clone() }
        }
        let report = check(&committed(rows), &streams, &[]);
        prop_assert_eq!(report.out_of_order, [Disorder { stream: 0, id: low.id, after: high.id }]);
    }

    // Guarantee: checker.deliveries
    #[test]
    fn an_invented_delivery_is_convicted_wherever_it_stands(
        (rows, mut streams) in faithful(2),
        pick in any::<prop::sample::Index>(),
    ) {
        let deliveries = streams.values_mut().next().expect("a stream");
        deliveries.insert(pick.index(deliveries.len() + 1), delivery(rows));
        let report = check(&committed(rows), &streams, &[]);
        prop_assert_eq!(report.phantom, [rows.to_string()]);
        prop_assert!(report.lost.is_empty() && report.out_of_order.is_empty() && report.holes.is_empty());
    }

    // Guarantee: checker.deliveries
    #[test]
    fn a_row_left_out_of_a_replay_is_convicted(rows in 4..60_usize, from in 0..60_usize, hole in 0..60_usize) {
        let from = from % (rows - 2);
        let hole = from + 1 + hole % (rows - from - 2);
        let delivered: Vec<usize> = (0..rows - 1).chain((from..rows).filter(|&row| row != hole)).collect();
        let report = check(&committed(rows), &one(&delivered), &[]);
        prop_assert!(report.is_faithful());
        prop_assert_eq!(report.holes.len(), 1);
        prop_assert_eq!(&report.holes[0].expected, &hole.to_string());
    }
}
