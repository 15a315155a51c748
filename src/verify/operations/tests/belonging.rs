//! Which operations are a relay's, and which outcome is a change's.

use super::*;

#[test]
fn outcome_is_that_of_the_change_with_its_number() {
    let numbered = |number: i64, [note, ordered]: [Operation; 2]| [note, Operation { number: Some(number), ..ordered }];
    // The first one is carried out when the second is written already, whose place the third takes.
    let [first_note, first] = numbered(1, seek(1, 1, "r", place(10, "1"), place(20, "5")));
    let [_, second] = numbered(2, seek(2, 2, "r", place(10, "1"), place(40, "9")));
    let third = numbered(3, change(3, done(4, "cursor adopt", "r"), false));
    let changes = [Operation { id: 3, ..first_note }, first, second];
    let history = history(changes.into_iter().chain(third));
    assert_eq!((history.says(row(15, "3"), ""), history.says(row(30, "7"), "")), (SKIPPED, Said::Due));
}

#[test]
fn outcome_that_is_noted_after_the_next_change_is_that_of_its_own() {
    let [moved, first] = seek(1, 1, "r", place(10, "1"), place(20, "5"));
    let [stayed, second] = skip(2, 2, place(25, "6"), false);
    let notes = [Operation { id: 3, ..moved }, Operation { id: 4, ..stayed }];
    let history = history([first, second].into_iter().chain(notes));
    assert_eq!((history.says(row(15, "3"), ""), history.says(row(25, "6"), "")), (SKIPPED, Said::Due));
}

#[test]
fn operations_belong_to_the_relay_that_had_the_name_then() {
    let rename = Operation { former: Some("old".to_owned()), ..done(10, "cursor rename", "r") };
    let removed = done(3, "cursor remove", "old");
    let discards = [(2, "old"), (7, "old"), (8, "r"), (11, "r"), (12, "old")];
    let discards = discards.map(|(id, cursor)| done(id, "dead-letter discard", cursor));
    let moved = seek(5, 1, "old", place(10, "1"), place(20, "5"));
    let history = history([removed, rename].into_iter().chain(moved).chain(discards));
    assert_eq!(history.names, ["r", "old"]);
    assert_eq!(history.says(row(15, "3"), ""), SKIPPED);
    assert_eq!(history.discards(), [7, 11]);
}
