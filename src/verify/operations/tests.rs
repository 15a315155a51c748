use super::*;
use crate::source::shape::IdType;

mod belonging;

fn place(micros: i64, id: &str) -> Option<Position> {
    Some(Position { created_at: Timestamp::from_pg_micros(micros), id: Some(id.to_owned()) })
}

fn row(micros: i64, id: &str) -> Row<'_> {
    Row { id, at: Timestamp::from_pg_micros(micros), ids: IdType::BigInt, given_up: None }
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

/// The two shards of `r` are exchanged for others.
fn reshard(id: i64) -> Operation {
    Operation { former: Some("[\"r#0\",\"r#1\"]".to_owned()), ..done(id, "cursor reshard", "r") }
}

/// Of the relay `r`.
fn history(operations: impl IntoIterator<Item = Operation>) -> History {
    let mut operations: Vec<Operation> = operations.into_iter().collect();
    operations.sort_by_key(|operation| std::cmp::Reverse(operation.id));
    History::of("r", operations)
}

const SKIPPED: Said = Said::Passed(Known::Skipped);
const BEFORE: Said = Said::Passed(Known::BeforeStart);
const DISCARDED: Said = Said::Passed(Known::Discarded);
const FORMER: Said = Said::Unclear(Withheld::FormerShard);

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
fn row_before_the_start_is_not_due_unless_its_cursor_was_led_back_there() {
    let began = |mut history: History| {
        history.begin(Start::At(Timestamp::from_pg_micros(18)), &[]);
        history
    };
    let plain = began(history([]));
    assert_eq!((plain.says(row(17, "4"), ""), plain.says(row(18, "4"), "")), (BEFORE, Said::Nothing));
    let back = || seek(1, 1, "r#0", place(30, "7"), place(12, "2"));
    let led_back = began(history(back()));
    assert_eq!((led_back.says(row(15, "3"), "#0"), led_back.says(row(15, "3"), "#1")), (Said::Due, BEFORE));
    let of_either = began(history(back().into_iter().chain([reshard(9)])));
    assert_eq!(of_either.says(row(15, "3"), "#0"), FORMER);
}

// Guarantee: verify.explained
#[test]
fn row_of_an_unknown_former_shard_was_passed_over_if_each_of_them_passed_its_place() {
    let one = || seek(1, 1, "r#0", place(10, "1"), place(20, "5")).into_iter();
    let other = seek(3, 1, "r#1", place(12, "2"), place(18, "4"));
    assert_eq!(history(one().chain([reshard(9)])).says(row(15, "3"), "#0"), FORMER);
    let all = history(one().chain(other).chain([reshard(9)]));
    for (micros, id, said) in
        [(15, "3", SKIPPED), (11, "9", FORMER), (19, "9", FORMER), (9, "9", Said::Nothing), (21, "9", Said::Due)]
    {
        assert_eq!(all.says(row(micros, id), "#2"), said, "{id} at {micros}");
    }
}

// Guarantee: verify.explained
// Guarantee: verify.repair
#[test]
fn skip_before_a_reshard_is_known_by_the_row_that_it_names() {
    let passed = |id, cursor, to| change(1, Operation { to, ..done(id, "cursor skip", cursor) }, true).into_iter();
    let skips = || passed(1, "r#0", place(15, "3")).chain(passed(3, "r#1", place(12, "2"))).chain([reshard(9)]);
    let skipped = history(skips());
    assert_eq!((skipped.says(row(15, "3"), "#2"), skipped.says(row(12, "2"), "#2")), (SKIPPED, SKIPPED));
    assert_eq!(skipped.says(row(14, "4"), "#2"), Said::Due, "no skip names it");
    for (cursor, said) in [("r#0", Said::Due), ("r#1", SKIPPED)] {
        let back = seek(5, 2, cursor, place(30, "7"), place(11, "1"));
        assert_eq!(history(skips().chain(back)).says(row(15, "3"), "#2"), said, "{cursor} was led back");
    }
}

// Guarantee: verify.explained
#[test]
fn relay_with_a_name_that_a_rename_freed_has_no_operations_of_the_one_before() {
    let freed = Operation { former: Some("r".to_owned()), ..done(5, "cursor rename", "new") };
    let before = seek(1, 1, "r", place(10, "1"), place(20, "5"));
    let after = seek(8, 1, "r", place(30, "7"), place(40, "9"));
    let discards = [3, 7].map(|id| done(id, "dead-letter discard", "r"));
    let history = history(before.into_iter().chain(after).chain(discards).chain([freed]));
    assert_eq!(history.names, ["r"]);
    assert_eq!((history.says(row(15, "3"), ""), history.says(row(35, "8"), "")), (Said::Nothing, SKIPPED));
    assert_eq!(history.discards(), [7]);
}

/// What is said of a row whose dead letter the note of this number gave up.
fn given_up(history: &History, note: i64, row: Row<'_>, shard: &str) -> Said {
    history.says(Row { given_up: history.given_up(note), ..row }, shard)
}

// Guarantee: verify.explained
#[test]
fn row_that_was_given_up_comes_again_by_what_leads_its_own_shard_back() {
    let back = seek(5, 1, "r#0", place(30, "7"), place(12, "2"));
    let discards = [4, 7].map(|id| done(id, "dead-letter discard", "r#0"));
    let led_back = history(back.into_iter().chain(discards));
    assert_eq!(given_up(&led_back, 4, row(15, "3"), "#0"), Said::Due);
    assert_eq!(given_up(&led_back, 7, row(15, "3"), "#0"), DISCARDED, "it was given up after that");
    assert_eq!(given_up(&led_back, 4, row(11, "1"), "#0"), DISCARDED);
    assert_eq!(given_up(&led_back, 4, row(15, "3"), "#1"), DISCARDED);
    let instants = [15, 31].map(Timestamp::from_pg_micros);
    assert_eq!(instants.map(|at| led_back.moved_back(at, Some("#0"))), [1, 0]);
    let onwards = skip(5, 1, place(12, "2"), true).into_iter().chain([done(4, "dead-letter discard", "r")]);
    assert_eq!(given_up(&history(onwards), 4, row(15, "3"), ""), DISCARDED, "it was beyond the position");
}

// Guarantee: verify.explained
#[test]
fn note_that_a_row_was_given_up_names_its_former_shard() {
    let discard = |id, cursor| done(id, "dead-letter discard", cursor);
    for (cursor, said) in [("r#0", Said::Due), ("r#1", DISCARDED)] {
        let back = seek(5, 1, cursor, place(30, "7"), place(12, "2"));
        let led_back = history(back.into_iter().chain([discard(4, "r#0"), reshard(9)]));
        assert_eq!(given_up(&led_back, 4, row(15, "3"), "#2"), said, "{cursor} was led back");
    }
    let back = seek(5, 1, "r#0", place(30, "7"), place(12, "2"));
    let first = Operation { former: Some("[\"r\"]".to_owned()), ..done(3, "cursor reshard", "r") };
    let twice = history(back.into_iter().chain([discard(1, "r"), first, reshard(9)]));
    assert_eq!(given_up(&twice, 1, row(15, "3"), "#2"), FORMER, "only one of the two shards was led back");
}

// Guarantee: verify.repair
#[test]
fn row_older_than_an_adopt_of_its_cursor_may_have_been_accepted_as_never_sent() {
    let adopt = |id| {
        let [note, ordered] = change(1, done(id, "cursor adopt", "r#0"), false);
        [Operation { at: Some(Timestamp::from_pg_micros(20)), ..note }, ordered].into_iter()
    };
    let adopted = history(adopt(5));
    assert_eq!(adopted.says(row(15, "3"), "#0"), Said::Unclear(Withheld::Adopted));
    assert_eq!((adopted.says(row(21, "6"), "#0"), adopted.says(row(15, "3"), "#1")), (Said::Nothing, Said::Nothing));
    let over = seek(1, 1, "r#0", place(10, "1"), place(18, "5"));
    assert_eq!(history(adopt(5).chain(over)).says(row(15, "3"), "#0"), SKIPPED);
    let back = seek(7, 2, "r#0", place(30, "7"), place(12, "2"));
    assert_eq!(history(adopt(5).chain(back)).says(row(15, "3"), "#0"), Said::Due);
}

/// An adoption of `r#0` with this number, carried out at 20 where the cursor stood.
fn adopt_at(id: i64, stood: Option<Position>) -> impl Iterator<Item = Operation> {
    let [note, ordered] = change(1, done(id, "cursor adopt", "r#0"), false);
    let note = Operation { at: Some(Timestamp::from_pg_micros(20)), to: stood, is_placed: true, ..note };
    [note, ordered].into_iter()
}

// Guarantee: verify.repair
#[test]
fn row_after_the_place_of_an_adopt_is_due_and_one_up_to_it_may_have_been_accepted() {
    let adopted = history(adopt_at(5, place(12, "2")));
    for (micros, id, said) in [
        (11, "9", Said::Unclear(Withheld::Adopted)),
        (12, "2", Said::Unclear(Withheld::Adopted)),
        (12, "3", Said::Due),
        (15, "3", Said::Due),
        (25, "6", Said::Due),
    ] {
        assert_eq!(adopted.says(row(micros, id), "#0"), said, "{id} at {micros}");
    }
    assert_eq!(history(adopt_at(5, None)).says(row(1, "1"), "#0"), Said::Due, "it stood before every row");
    let text = Row { ids: IdType::Text, ..row(12, "z") };
    assert_eq!(adopted.says(text, "#0"), Said::Unclear(Withheld::Adopted), "only PostgreSQL orders texts");
    let discarded = history(adopt_at(5, place(12, "2")).chain([done(4, "dead-letter discard", "r#0")]));
    assert_eq!(given_up(&discarded, 4, row(15, "3"), "#0"), DISCARDED, "it was beyond the position");
}

// Guarantee: verify.repair
#[test]
fn adopt_of_another_number_of_partitions_accepts_no_row() {
    let of_topic = adopt_at(5, place(12, "2")).map(|operation| Operation { is_of_topic: true, ..operation });
    assert_eq!(history(of_topic).says(row(11, "9"), "#0"), Said::Nothing);
}

// Guarantee: verify.kinds
#[test]
fn move_back_of_one_shard_explains_no_second_record_of_another_shard() {
    let moved = history(seek(1, 1, "r#0", place(30, "7"), place(12, "2")));
    let at = Timestamp::from_pg_micros(15);
    assert_eq!(["#0", "#1"].map(|shard| moved.moved_back(at, Some(shard))), [1, 0]);
    assert_eq!(moved.moved_back(at, None), 1, "its shard is not known");
    // Of two shards the row was of one; of which one of a former set is not known.
    let back = |id, cursor| seek(id, 1, cursor, place(30, "7"), place(12, "2")).into_iter();
    let both = || back(1, "r#0").chain(back(3, "r#1"));
    assert_eq!(history(both()).moved_back(at, None), 1);
    assert_eq!(history(both().chain([reshard(9)])).moved_back(at, Some("#2")), 1);
}

// Guarantee: verify.explained
#[test]
fn letters_of_the_cursors_that_a_reshard_has_ended_are_known_by_all_their_names() {
    let rename = Operation { former: Some("old".to_owned()), ..done(12, "cursor rename", "r") };
    let at = Some(Timestamp::from_pg_micros(20));
    let first = Operation { former: Some("[\"old\"]".to_owned()), ..done(3, "cursor reshard", "old") };
    let second = Operation { at, former: Some("[\"old#0\",\"old#1\"]".to_owned()), ..done(9, "cursor reshard", "old") };
    let ended = history([first, second, rename]);
    let names: Vec<(&str, Timestamp)> = ended.ended().iter().map(|ended| (ended.cursor.as_str(), ended.at)).collect();
    let (newer, older) = (Timestamp::from_pg_micros(20), Timestamp::INFINITY);
    let newest = [("r#0", newer), ("old#0", newer), ("r#1", newer), ("old#1", newer)];
    assert_eq!(names, [&newest[..], &[("r", older), ("old", older)]].concat());
    let letter = Row { given_up: Some(&ended.ended()[2].given_up), ..row(15, "3") };
    assert_eq!(ended.says(letter, "#4"), DISCARDED);
    assert_eq!(ended.says(row(15, "3"), "#4"), Said::Nothing);
}

// Guarantee: verify.explained
#[test]
fn row_of_a_former_letter_comes_again_by_what_led_back_after_the_reshard() {
    let back = seek(11, 1, "r#4", place(30, "7"), place(12, "2"));
    let ended = history(back.into_iter().chain([reshard(9)]));
    let letter = Row { given_up: Some(&ended.ended()[0].given_up), ..row(15, "3") };
    assert_eq!((ended.says(letter, "#4"), ended.says(letter, "#3")), (Said::Due, DISCARDED));
}
