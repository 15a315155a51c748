use proptest::prelude::*;

use super::*;

fn at(row: i64) -> Position {
    Position { created_at: Timestamp::from_pg_micros(row), id: Some(row.to_string()) }
}

fn sums(rows: impl IntoIterator<Item = i64>) -> Sums {
    let mut sums = Sums::default();
    rows.into_iter().for_each(|row| sums.add(element(&row.to_string())));
    sums
}

/// A move over rows that are not named.
fn moves<'a>(from: &'a Position, to: &'a Position, now: Timestamp) -> Move<'a> {
    Move { from: Some(from), to, reads: 7, passed: None, rows: 0, now }
}

/// A step of a cursor's life.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A turn passes so many rows, after so many seconds.
    Passes(i64, u64),
    /// A turn passes rows that it cannot name.
    PassesUnknown(i64),
    /// Something else moves the position: an operator, an older program, a turn that was resumed.
    Moves(i64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0_i64..30, 0_u64..40).prop_map(|(rows, seconds)| Step::Passes(rows, seconds)),
        1 => (0_i64..30).prop_map(Step::PassesUnknown),
        1 => (-30_i64..30).prop_map(Step::Moves),
    ];
    prop::collection::vec(step, 1..30)
}

proptest! {
    /// Rows are numbered, so what is between two places is known.
    #[test]
    fn slice_has_exactly_the_rows_that_turns_have_passed_between_its_places(steps in steps()) {
        let (mut position, mut open, mut now) = (at(1_000), None, Timestamp::from_pg_micros(0));
        let mut ended = Vec::new();
        for step in steps {
            let from = position.created_at.pg_micros();
            match step {
                Step::Moves(by) => position = at((from + by).max(0)),
                Step::Passes(rows, seconds) => {
                    now = now.plus(Duration::from_secs(seconds));
                    let (to, passed) = (at(from + rows), sums(from + 1..=from + rows));
                    let passed = Move { passed: Some(&passed), ..moves(&position, &to, now) };
                    let recorded = Recorded::of(open.take(), passed);
                    prop_assert_eq!(&recorded.unrecorded, &None);
                    ended.extend(recorded.ended);
                    (open, position) = (recorded.open, to);
                }
                Step::PassesUnknown(rows) => {
                    let to = at(from + rows);
                    let was_recorded = open.is_some();
                    let recorded = Recorded::of(open.take(), moves(&position, &to, now));
                    prop_assert_eq!(recorded.unrecorded.is_some(), was_recorded && rows > 0);
                    ended.extend(recorded.ended);
                    (open, position) = (recorded.open, to);
                }
            }
            if let Some(open) = open.as_ref().filter(|_| !matches!(step, Step::Moves(_))) {
                let read = Slice::from_bytes(&open.to_bytes());
                prop_assert_eq!(read.as_ref(), Some(open));
                prop_assert_eq!(&open.up_to, &position, "it goes on where the cursor stands");
            }
        }
        for slice in ended.iter().chain(&open) {
            let (after, up_to) = (slice.after.created_at.pg_micros(), slice.up_to.created_at.pg_micros());
            prop_assert_eq!(&slice.sums, &sums(after + 1..=up_to), "after {} up to {}", after, up_to);
        }
        prop_assert!(ended.iter().all(|slice| slice.sums.rows() > 0), "there is nothing to compare in an empty one");
    }

    #[test]
    fn transactions_that_came_late_are_told_from_those_that_were_passed(
        sizes in prop::collection::vec(1_i64..40, 1..12),
        late in prop::collection::vec(any::<prop::sample::Index>(), 1..3),
    ) {
        let late: std::collections::BTreeSet<usize> = late.iter().map(|index| index.index(sizes.len())).collect();
        let (mut of, mut delivered, mut table) = (HashMap::new(), Sums::default(), Sums::default());
        for (n, size) in sizes.iter().enumerate() {
            let first = i64::try_from(n).expect("small") * 100;
            let rows = sums(first..first + size);
            table.merge(&rows);
            if !late.contains(&n) {
                delivered.merge(&rows);
            }
            of.insert(n.to_string(), rows);
        }
        let mut told: Vec<usize> =
            transactions(&delivered, &table, &of).expect("told").iter().map(|name| name.parse().expect("a number")).collect();
        told.sort_unstable();
        prop_assert_eq!(told, late.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn part_of_a_transaction_is_not_told_as_the_whole() {
    let of = HashMap::from([("7".to_owned(), sums(0..50)), ("8".to_owned(), sums(50..60))]);
    assert_eq!(transactions(&sums(20..60), &sums(0..60), &of), None);
}

#[test]
fn slices_are_compared_again_after_ten_minutes_and_an_hour_as_check_and_documents_say() {
    let minutes = |duration: Duration| duration.as_secs() / 60;
    assert_eq!((AGAIN.map(minutes), minutes(LAST_COMPARISON), minutes(MADE_UP_FOR)), ([10, 60], 60, 120));
}

#[test]
fn slice_ends_after_a_minute_or_five_thousand_rows() {
    let now = Timestamp::from_pg_micros(0);
    let record = |rows: i64, later: u64| {
        let (from, to) = (at(0), at(rows));
        let passed = sums(1..=rows);
        let first = Recorded::of(None, Move { passed: Some(&passed), ..moves(&from, &to, now) });
        let (after, passed) = (at(rows + 1), sums([rows + 1]));
        let next = Move { passed: Some(&passed), ..moves(&to, &after, now.plus(Duration::from_secs(later))) };
        (first.ended.len(), Recorded::of(first.open, next).ended.len())
    };
    assert_eq!([record(10, 59), record(10, 60), record(5_000, 1)], [(0, 0), (0, 1), (1, 0)]);
}

#[test]
fn slice_that_begins_where_another_has_ended_counts_its_minute_from_its_first_row() {
    let begun = Timestamp::from_pg_micros(0);
    let passes = |open: Option<Slice>, row: i64, seconds: u64| {
        let (from, to, passed) = (at(row - 1), at(row), sums([row]));
        let now = begun.plus(Duration::from_secs(seconds));
        Recorded::of(open, Move { passed: Some(&passed), ..moves(&from, &to, now) })
    };
    let first = passes(None, 1, 0);
    let second = passes(first.open, 2, 60);
    let empty = second.open.expect("where the ended one ends");
    assert_eq!((second.ended.len(), &empty.after, &empty.up_to, empty.sums.rows()), (1, &at(2), &at(2), 0));
    let third = passes(Some(empty), 3, 200);
    assert_eq!((third.ended.len(), third.open.as_ref().map(|slice| slice.sums.rows())), (0, Some(1)));
    assert_eq!(passes(third.open, 4, 260).ended.len(), 1);
}

#[test]
fn first_turn_that_names_no_rows_says_where_rows_are_passed_unrecorded() {
    let (now, passed) = (Timestamp::from_pg_micros(0), sums([1]));
    let places = [at(0), at(1), at(5), at(9)];
    let recorded = Recorded::of(None, Move { passed: Some(&passed), ..moves(&places[0], &places[1], now) });
    let stays = Recorded::of(recorded.open.clone(), moves(&places[1], &places[1], now));
    assert_eq!((stays.open, stays.unrecorded), (recorded.open.clone(), None), "nothing is passed");
    let first = Recorded::of(recorded.open, Move { rows: 4, ..moves(&places[1], &places[2], now) });
    let expected = Unrecorded { after: places[1].clone(), up_to: places[2].clone(), reads: 7, rows: 4 };
    assert_eq!((first.ended.len(), first.unrecorded, &first.open), (1, Some(expected), &None));
    assert_eq!(Recorded::of(first.open, moves(&places[2], &places[3], now)), Recorded::default(), "it is said once");
}

#[test]
fn first_turn_of_a_cursor_is_recorded_from_before_every_row() {
    let (now, passed) = (Timestamp::from_pg_micros(0), sums(1..=3));
    let to = at(3);
    let first = Recorded::of(None, Move { from: None, passed: Some(&passed), ..moves(&to, &to, now) });
    let slice = first.open.expect("it goes on");
    assert_eq!(slice.after, Position { created_at: Timestamp::NEG_INFINITY, id: None });
    assert_eq!((&slice.up_to, &slice.sums), (&at(3), &passed));
    assert_eq!(Slice::from_bytes(&slice.to_bytes()), Some(slice));
}

#[test]
fn bytes_of_another_version_or_cut_ones_are_no_slice() {
    let slice = Slice {
        after: Position { id: None, ..at(1) },
        up_to: at(9),
        begun: Timestamp::from_pg_micros(5),
        reads: 3,
        sums: sums(1..9),
    };
    let bytes = slice.to_bytes();
    assert_eq!(Slice::from_bytes(&bytes), Some(slice));
    for end in 0..bytes.len() {
        assert_eq!(Slice::from_bytes(&bytes[..end]), None, "{end}");
    }
    assert_eq!(Slice::from_bytes(&[&[FORM + 1], &bytes[1..]].concat()), None);
}
