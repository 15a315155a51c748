//! What standbys have confirmed.

use proptest::prelude::*;

use crate::position::Timestamp;
use crate::source::horizon::{Confirmed, Held, Horizon, Standby, Wal, Why};
use crate::source::{Rule, TableName};

fn at(micros: i64) -> Timestamp {
    Timestamp::from_pg_micros(micros)
}

fn horizon(micros: i64) -> Horizon {
    let (at, observed_at) = (at(micros), at(micros + 10));
    Horizon {
        at,
        observed_at,
        held_by: Vec::new(),
        passed_over: Vec::new(),
        held_since: observed_at,
        rescan: false,
        stepped_back: None,
    }
}

/// The log at `inserted`, and how far each standby has flushed it.
fn wal(inserted: u64, flushed: &[Option<u64>]) -> Wal {
    let standby = |(pid, flushed): (i32, &Option<u64>)| Standby { pid, application: None, flushed: *flushed };
    Wal { inserted, page: 8_192, segment: 1 << 24, standbys: (1..).zip(flushed).map(standby).collect() }
}

/// How far a table is safe to read after each scan, with so many standbys asked for.
fn safe(standbys: usize, scans: &[(i64, u64, &[Option<u64>])]) -> Vec<Timestamp> {
    let mut confirmed = Confirmed::default();
    let each = scans.iter().map(|(micros, inserted, flushed)| {
        let mut horizon = horizon(*micros);
        confirmed.hold(&mut horizon, &wal(*inserted, flushed), standbys);
        horizon.at
    });
    each.collect()
}

#[test]
fn newest_horizon_whose_log_is_flushed_is_used() {
    let scans: [(i64, u64, &[Option<u64>]); 4] = [
        (100, 1_000, &[Some(900)]),
        (200, 2_000, &[Some(1_000)]),
        (300, 3_000, &[Some(2_999)]),
        (400, 3_000, &[Some(3_000)]),
    ];
    assert_eq!(safe(1, &scans), [Timestamp::NEG_INFINITY, at(100), at(200), at(400)]);
}

#[test]
fn as_many_standbys_as_asked_for_must_have_flushed() {
    let scans: [(i64, u64, &[Option<u64>]); 3] =
        [(100, 1_000, &[Some(5_000)]), (200, 2_000, &[Some(5_000), None]), (300, 3_000, &[Some(2_500), Some(5_000)])];
    assert_eq!(safe(2, &scans), [Timestamp::NEG_INFINITY, Timestamp::NEG_INFINITY, at(200)]);
    assert_eq!(safe(1, &scans), [at(100), at(200), at(300)]);
}

#[test]
fn header_of_an_empty_page_is_not_waited_for() {
    let page = |inserted: u64, flushed: u64| safe(1, &[(100, inserted, &[Some(flushed)])]) == [at(100)];
    assert!(page(8_192 + 24, 8_192), "nothing is on the page yet");
    assert!(page((1 << 24) + 40, 1 << 24), "nor in the segment");
    assert!(!page(8_192 + 32, 8_192), "a record ends here");
    assert!(!page((1 << 24) + 24, 1 << 24), "the first page of a segment has a longer header");
}

#[test]
fn standby_that_is_waited_for_is_named_and_a_missing_one_is_told() {
    let mut horizon_now = horizon(100);
    Confirmed::default().hold(&mut horizon_now, &wal(1_000, &[Some(5_000), Some(900)]), 2);
    let held = &horizon_now.held_by[0];
    assert_eq!((held.why, held.holder.pid, held.bound), (Why::Standby, Some(2), None));
    let table = TableName { schema: "public".to_owned(), name: "bookings".to_owned() };
    let sentence = |held: &Held, rule| held.sentence(rule, &table);
    let waits = "standby without a name (pid 2) has not yet written the commits of public.bookings to its disk";
    assert_eq!(sentence(held, Rule::Writers), waits);
    let mut horizon_now = horizon(100);
    Confirmed::default().hold(&mut horizon_now, &wal(1_000, &[]), 1);
    let held = &horizon_now.held_by[0];
    assert_eq!((held.why, horizon_now.at), (Why::NoStandby, Timestamp::NEG_INFINITY));
    assert!(sentence(held, Rule::Writers).starts_with("too few standbys are connected, or"));
    let mut writer = Held { why: Why::Transaction, ..held.clone() };
    assert_eq!(sentence(&writer, Rule::Writers), "a prepared transaction is writing public.bookings");
    writer.holder.pid = Some(7);
    assert_eq!(sentence(&writer, Rule::Transactions), "pid 7 may be writing public.bookings");
}

#[test]
fn hold_is_as_old_as_the_first_scan_that_nothing_has_confirmed() {
    let mut confirmed = Confirmed::default();
    confirmed.hold(&mut horizon(100), &wal(1_000, &[]), 1);
    let mut later = horizon(900);
    confirmed.hold(&mut later, &wal(2_000, &[]), 1);
    assert_eq!(later.held_since, at(110), "the clock of the first scan");
}

#[test]
fn horizons_of_before_a_step_of_the_clock_are_forgotten() {
    let mut confirmed = Confirmed::default();
    confirmed.hold(&mut horizon(400), &wal(900, &[Some(900)]), 1);
    confirmed.hold(&mut horizon(500), &wal(1_000, &[Some(900)]), 1);
    let mut stepped = Horizon { stepped_back: Some(std::time::Duration::from_secs(1)), ..horizon(100) };
    confirmed.hold(&mut stepped, &wal(2_000, &[Some(1_500)]), 1);
    assert_eq!(stepped.at, Timestamp::NEG_INFINITY);
}

proptest! {
    /// However scans and standbys go on, nothing is safe beyond what a scan said whose log is flushed, nor beyond the present scan.
    // Guarantee: horizon.standby
    #[test]
    fn nothing_unconfirmed_is_ever_safe(
        steps in prop::collection::vec((0_i64..50, 0_u64..100, 0_u64..150), 1..60),
        standbys in 1_usize..3,
    ) {
        let (mut confirmed, mut scans) = (Confirmed::default(), Vec::new());
        let (mut clock, mut inserted) = (0, 100_000);
        let mut flushed = [100_000_u64, 100_000];
        for (index, (tick, bytes, more)) in steps.into_iter().enumerate() {
            clock += tick;
            inserted += bytes;
            flushed[index % 2] = (flushed[index % 2] + more).min(inserted);
            // A transaction that shows late lowers a horizon.
            let safe = clock - if index % 3 == 0 { 40 } else { 0 };
            scans.push((inserted, safe));
            let mut now = horizon(safe);
            confirmed.hold(&mut now, &wal(inserted, &flushed.map(Some)), standbys);
            let mut sorted = flushed;
            sorted.sort_unstable_by(|one, other| other.cmp(one));
            let enough = sorted[standbys - 1];
            let best = scans.iter().filter(|(end, _)| *end <= enough).map(|(_, at)| *at).max();
            prop_assert_eq!(now.at, best.map_or(Timestamp::NEG_INFINITY, |best| at(best.min(safe))));
        }
    }
}
