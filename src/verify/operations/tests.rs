use super::*;

fn place(micros: i64, id: &str) -> Option<Position> {
    Some(Position { created_at: Timestamp::from_pg_micros(micros), id: Some(id.to_owned()) })
}

fn row(micros: i64, id: &str) -> Row<'_> {
    Row { id, at: Timestamp::from_pg_micros(micros), ids: IdType::BigInt }
}

fn done(id: i64, verb: &str, cursor: &str) -> Operation {
    Operation { id, verb: verb.to_owned(), cursor: cursor.to_owned(), ..Operation::default() }
}

/// A change with this number, and after it the note that it was carried out.
fn change(number: i64, ordered: Operation, moved: bool) -> [Operation; 2] {
    let note = done(ordered.id + 1, "change applied", &ordered.cursor);
    [Operation { number: Some(number), moved: Some(moved), ..note }, ordered]
}

fn seek(id: i64, number: i64, cursor: &str, from: Option<Position>, to: Option<Position>) -> [Operation; 2] {
    change(number, Operation { from, to, ..done(id, "cursor seek", cursor) }, true)
}

fn skip(id: i64, number: i64, to: Option<Position>, moved: bool) -> [Operation; 2] {
    change(number, Operation { to, ..done(id, "cursor skip", "r") }, moved)
}

/// Of the relay `r`.
fn history(operations: impl IntoIterator<Item = Operation>) -> History {
    let mut operations: Vec<Operation> = operations.into_iter().collect();
    operations.sort_by_key(|operation| std::cmp::Reverse(operation.id));
    History::of("r", operations)
}

const SKIPPED: Said = Said::Passed(Known::Skipped);
const BEFORE: Said = Said::Passed(Known::BeforeStart);

// Guarantee: verify.explained
#[test]
fn move_forward_passes_over_the_rows_in_between_and_no_others() {
    let history = history(seek(1, 1, "r", place(10, "1"), place(20, "5")));
    for (micros, id, said) in [
        (9, "9", Said::Nothing),
        (10, "1", Said::Nothing),
        (10, "2", SKIPPED),
        (15, "3", SKIPPED),
        (20, "5", SKIPPED),
        (20, "6", Said::Due),
        (21, "4", Said::Due),
    ] {
        assert_eq!(history.says(row(micros, id), ""), said, "{id} at {micros}");
    }
    let text = |micros, id| Row { ids: IdType::Text, ..row(micros, id) };
    assert_eq!(history.says(text(20, "z"), ""), SKIPPED, "only PostgreSQL orders texts");
    assert_eq!(history.says(text(10, "1"), ""), Said::Nothing);
}

// Guarantee: verify.explained
#[test]
fn move_of_one_shard_explains_no_row_of_another() {
    let history = history(seek(1, 1, "r#0", place(10, "1"), place(20, "5")));
    assert_eq!(history.says(row(15, "3"), "#0"), SKIPPED);
    assert_eq!(history.says(row(15, "3"), "#1"), Said::Nothing);
}

// Guarantee: verify.explained
#[test]
fn what_a_later_move_led_back_over_is_not_explained_by_an_earlier_one() {
    let forward = || seek(1, 1, "r", place(10, "1"), place(20, "5"));
    let back = seek(3, 2, "r", place(30, "7"), place(12, "2"));
    let both = history(forward().into_iter().chain(back));
    assert_eq!((both.says(row(11, "2"), ""), both.says(row(15, "3"), "")), (SKIPPED, Said::Due));
    let skipped = skip(1, 1, place(15, "3"), true).into_iter();
    let back = seek(3, 2, "r", place(30, "7"), place(12, "2"));
    assert_eq!(history(skipped.chain(back)).says(row(15, "3"), ""), Said::Due);
    let by_itself = Operation { to: place(12, "2"), ..done(3, "position moved back", "r") };
    assert_eq!(history(forward().into_iter().chain([by_itself])).says(row(15, "3"), ""), Said::Due);
}

// Guarantee: verify.explained
#[test]
fn change_that_moved_nothing_explains_nothing() {
    for (moved, said) in [(true, SKIPPED), (false, Said::Nothing)] {
        let history = history(skip(1, 1, place(15, "3"), moved));
        assert_eq!(history.says(row(15, "3"), ""), said);
        assert_eq!(history.says(row(15, "2"), ""), Said::Nothing, "another row of its instant");
    }
    // Another change took its place before a turn carried it out.
    let [_, replaced] = seek(1, 1, "r", place(10, "1"), place(20, "5"));
    let other = change(2, done(2, "cursor adopt", "r"), false);
    assert_eq!(history([replaced].into_iter().chain(other)).says(row(15, "3"), ""), Said::Nothing);
}

#[test]
fn outcome_that_is_noted_after_the_next_change_is_that_of_its_own() {
    let [moved, first] = seek(1, 1, "r", place(10, "1"), place(20, "5"));
    let [stayed, second] = skip(2, 2, place(25, "6"), false);
    let notes = [Operation { id: 3, ..moved }, Operation { id: 4, ..stayed }];
    let history = history([first, second].into_iter().chain(notes));
    assert_eq!((history.says(row(15, "3"), ""), history.says(row(25, "6"), "")), (SKIPPED, Said::Due));
}

// Guarantee: verify.explained
#[test]
fn cursor_that_was_made_at_a_place_had_no_row_before_it_to_send_and_others_had() {
    let made = Operation { to: place(20, "5"), ..done(1, "cursor create", "r#1") };
    let history = history([made]);
    assert_eq!((history.says(row(20, "5"), "#1"), history.says(row(20, "6"), "#1")), (BEFORE, Said::Due));
    assert_eq!(history.says(row(15, "3"), "#0"), Said::Nothing);
}

// Guarantee: verify.explained
#[test]
fn row_of_an_unknown_former_shard_was_passed_over_if_each_of_them_passed_its_place() {
    let reshard = || Operation { former: Some("[\"r#0\",\"r#1\"]".to_owned()), ..done(9, "cursor reshard", "r") };
    let one = || seek(1, 1, "r#0", place(10, "1"), place(20, "5")).into_iter();
    let other = seek(3, 1, "r#1", place(12, "2"), place(18, "4"));
    assert_eq!(history(one().chain([reshard()])).says(row(15, "3"), "#0"), Said::Nothing);
    let all = history(one().chain(other).chain([reshard()]));
    for (micros, id, said) in [(15, "3", SKIPPED), (11, "9", Said::Nothing), (19, "9", Said::Due)] {
        assert_eq!(all.says(row(micros, id), "#2"), said, "{id} at {micros}");
    }
}

#[test]
fn operations_belong_to_the_relay_that_had_the_name_then() {
    let rename = Operation { former: Some("old".to_owned()), ..done(10, "cursor rename", "r") };
    let removed = done(3, "cursor remove", "old");
    let history = history([removed, rename].into_iter().chain(seek(5, 1, "old", place(10, "1"), place(20, "5"))));
    assert_eq!(history.names, ["r", "old"]);
    assert_eq!(history.says(row(15, "3"), ""), SKIPPED);
    for (name, operation, own) in
        [("old", 5, true), ("old", 2, false), ("r", 5, false), ("r", 11, true), ("old", 11, false)]
    {
        assert_eq!(history.is_own(name, operation), own, "{name} {operation}");
    }
}

// Guarantee: verify.explained
#[test]
fn row_comes_again_by_a_later_move_of_its_own_shard() {
    let history = history(seek(5, 1, "r#0", place(30, "7"), place(12, "2")));
    assert!(history.came_again(row(15, "3"), "#0", 4));
    assert!(!history.came_again(row(15, "3"), "#0", 6), "it was given up after that");
    assert!(!history.came_again(row(11, "1"), "#0", 4) && !history.came_again(row(15, "3"), "#1", 4));
    assert_eq!(
        (history.moved_back(Timestamp::from_pg_micros(15)), history.moved_back(Timestamp::from_pg_micros(31))),
        (1, 0)
    );
}
