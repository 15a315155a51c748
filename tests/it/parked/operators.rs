//! What operators do while keys are parked.

use std::time::Duration;

use super::{Stage, book, no_key_is_parked, pairs, parked, refuse, stage, verb};
use crate::support::outside::{halted, json};
use crate::support::relays::parse;
use crate::support::{PATIENCE, Replica, eventually, outbox_relay};

// Guarantee: parked.order
#[tokio::test(flavor = "multi_thread")]
async fn after_a_seek_back_parked_rows_are_parked_once() {
    let Stage { owner, receiver, text, replica, database: _database } = stage().await;
    verb(&text, &["cursor", "seek", "h", "--beginning", "--yes"]).await;
    let again = ["1", "3", "1", "3"];
    eventually(PATIENCE * 2, async || receiver.accepted("h") == again).await;
    book(&owner, "c", &["7"]).await;
    eventually(PATIENCE, async || receiver.accepted("h").last().is_some_and(|id| id == "7")).await;
    assert_eq!(parked(&owner, "h").await, pairs(&[("a", "2"), ("a", "4"), ("a", "6"), ("b", "5")]));
    let rows: i64 = owner.query_one("SELECT sum(rows)::bigint FROM outbox.parked_key", &[]).await.unwrap().get(0);
    assert_eq!(rows, 4, "counted as they are");
    replica.stop().await;
}

// Guarantee: parked.kept
#[tokio::test(flavor = "multi_thread")]
async fn a_renamed_cursor_takes_its_parked_keys_along_and_one_that_has_some_is_not_removed() {
    let Stage { owner, receiver, text, replica, database: _database } = stage().await;
    replica.stop().await;
    let (code, _, log) = outbox_relay(&text, &["cursor", "remove", "h", "--yes"]).await;
    assert_eq!(code, Some(1), "{log}");
    // Without open dead letters the parked rows alone keep it.
    verb(&text, &["dead-letter", "discard", "--cursor", "h", "--yes"]).await;
    let (code, _, log) = outbox_relay(&text, &["cursor", "remove", "h", "--yes"]).await;
    assert!(code == Some(1) && log.contains("parked"), "{code:?} {log}");
    let new = text.replace("name = \"h\"", "name = \"new\"");
    verb(&new, &["cursor", "rename", "h", "new", "--yes"]).await;
    assert_eq!(parked(&owner, "new").await, pairs(&[("a", "4"), ("a", "6")]));
    let replica = Replica::start(&parse(&new), "r2");
    eventually(PATIENCE * 2, async || receiver.accepted("new") == ["4", "6"]).await;
    replica.stop().await;
}

// Guarantee: parked.kept
#[tokio::test(flavor = "multi_thread")]
async fn what_is_parked_refuses_a_removal_before_it_asks_and_the_printed_run_ends_it() {
    let Stage { owner, receiver, text, replica, database: _database } = stage().await;
    replica.stop().await;
    let remove = async |consent: &str| outbox_relay(&text, &["cursor", "remove", "h", consent]).await;
    let (code, _, log) = remove("--dry-run").await;
    let hint = "\n  2 parked keys -> after its dead letters: `outbox-relay run --once --relay h`: sends their 4 rows, in order; or";
    assert!(code == Some(1) && log.contains("\n  2 dead letters -> ") && log.contains(hint), "{code:?} {log}");
    // Of one of the keys no row is left.
    verb(&text, &["dead-letter", "discard", "--cursor", "h", "--yes"]).await;
    let refused = remove("--dry-run").await;
    let hint = "\n  2 parked keys -> `outbox-relay run --once --relay h`: sends their 2 rows, in order; or give these up: `WITH";
    assert!(refused.0 == Some(1) && refused.1.is_empty() && refused.2.contains(hint), "{refused:?}");
    assert_eq!(remove("--yes").await, refused, "the dry run said the same");
    verb(&text, &["run", "--once", "--relay", "h"]).await;
    assert_eq!(receiver.accepted("h"), ["1", "3", "4", "6"]);
    assert!(no_key_is_parked(&owner).await);
    verb(&text, &["cursor", "remove", "h", "--yes"]).await;
}

// Guarantee: parked.kept
#[tokio::test(flavor = "multi_thread")]
async fn parked_rows_of_a_relay_that_is_not_configured_any_more_are_given_up_as_printed() {
    let Stage { owner, receiver, text, replica, database: _database } = stage().await;
    replica.stop().await;
    verb(&text, &["dead-letter", "discard", "--cursor", "h", "--yes"]).await;
    let without = text.replace("name = \"h\"", "name = \"other\"");
    let (code, _, log) = outbox_relay(&without, &["cursor", "remove", "h", "--yes"]).await;
    assert!(
        code == Some(1) && log.contains("-> configure the relay again, `outbox-relay run --once --relay h`"),
        "{log}"
    );
    let printed = log.split_once("give these up: `").and_then(|(_, rest)| rest.split_once('`')).map(|(sql, _)| sql);
    owner.batch_execute(printed.unwrap_or_else(|| panic!("{log}"))).await.unwrap();
    verb(&without, &["cursor", "remove", "h", "--yes"]).await;
    assert_eq!(receiver.accepted("h"), ["1", "3"]);
    assert!(no_key_is_parked(&owner).await);
}

// Guarantee: parked.kept
#[tokio::test(flavor = "multi_thread")]
async fn refused_deletion_of_a_cursor_names_the_command_that_ends_its_parked_keys() {
    let Stage { owner, receiver, text, replica, database: _database } = stage().await;
    replica.stop().await;
    let delete = "DELETE FROM outbox.cursor WHERE name = 'h'";
    let hint = async || {
        let error = owner.batch_execute(delete).await.expect_err("its rows have not been sent");
        error.as_db_error().and_then(|error| error.hint()).map(str::to_owned).unwrap_or_else(|| panic!("{error:?}"))
    };
    let [letters, run] = ["`outbox-relay dead-letter discard --cursor h`", "`outbox-relay run --once --relay h`"];
    let said = hint().await;
    assert!(said.contains(letters) && said.contains(run), "{said}");
    verb(&text, &["dead-letter", "discard", "--cursor", "h", "--yes"]).await;
    let said = hint().await;
    assert!(!said.contains("dead-letter ") && said.contains(run), "no dead letter is left to decide about: {said}");
    assert!(said.contains("`outbox-relay cursor remove h --dry-run`"), "{said}");
    verb(&text, &["run", "--once", "--relay", "h"]).await;
    assert_eq!(receiver.accepted("h"), ["1", "3", "4", "6"]);
    assert_eq!(owner.execute(delete, &[]).await.unwrap(), 1, "the printed command has ended them");
}

#[tokio::test(flavor = "multi_thread")]
async fn why_says_that_keys_wait_and_for_what() {
    let Stage { text, replica, database: _database, .. } = stage().await;
    let (code, out, log) = outbox_relay(&text, &["cursor", "why", "h", "-o", "json"]).await;
    assert!(code.is_some_and(|code| code != 2), "{log}");
    let why = json(&out);
    assert!(why["summary"].as_str().unwrap().contains("2 keys are parked"), "{why}");
    assert!(why["next_steps"].to_string().contains("dead-letter list --cursor h"), "{why}");
    replica.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn schema_is_not_taken_back_while_keys_are_parked() {
    let Stage { text, replica, database, .. } = stage().await;
    replica.stop().await;
    let owner = text.replace(&database.url("relay"), &database.url("postgres"));
    let (code, _, log) = outbox_relay(&owner, &["migrate", "down", "--to", "13"]).await;
    assert!(code == Some(1) && log.contains("parked keys"), "{code:?} {log}");
}

// Guarantee: parked.order
#[tokio::test(flavor = "multi_thread")]
async fn once_sends_the_rows_of_released_keys_before_it_ends() {
    let Stage { owner, receiver, text, replica, database: _database } = stage().await;
    replica.stop().await;
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!(code, Some(0), "keys that wait for an operator are not waited for: {log}");
    verb(&text, &["dead-letter", "discard", "--cursor", "h", "--yes"]).await;
    book(&owner, "a", &["7"]).await;
    verb(&text, &["run", "--once"]).await;
    assert_eq!(receiver.accepted("h"), ["1", "3", "4", "6", "7"]);
    assert!(no_key_is_parked(&owner).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn once_sends_the_rows_of_released_keys_although_no_new_row_follows() {
    let Stage { owner, receiver, text, replica, database: _database } = stage().await;
    replica.stop().await;
    verb(&text, &["dead-letter", "discard", "--cursor", "h", "--yes"]).await;
    verb(&text, &["run", "--once"]).await;
    assert_eq!(receiver.accepted("h"), ["1", "3", "4", "6"]);
    assert!(no_key_is_parked(&owner).await);
}

// Guarantee: parked.others
#[tokio::test(flavor = "multi_thread")]
async fn message_that_is_redriven_too_early_holds_no_other_key_up() {
    let Stage { owner, receiver, text, replica, database: _database } = stage().await;
    receiver.answer(|request| (if request.body.contains("bad") { 503 } else { 200 }, Duration::ZERO));
    verb(&text, &["dead-letter", "redrive", "--cursor", "h", "--yes"]).await;
    let refused = |count: usize| receiver.requests().iter().filter(|one| one.key == "h/2").count() >= count;
    // Each comes behind one more attempt that fails.
    for (n, id) in ["7", "8", "9", "10"].into_iter().enumerate() {
        eventually(PATIENCE, async || refused(2 + n)).await;
        book(&owner, "c", &[id]).await;
        eventually(PATIENCE, async || receiver.accepted("h").last().is_some_and(|last| last == id)).await;
    }
    let state = "SELECT last_error ->> 'code', message_id, circuit_opened_at IS NULL FROM outbox.cursor_status";
    eventually(PATIENCE, async || {
        let row = owner.query_one(state, &[]).await.unwrap();
        let (code, id): (Option<String>, Option<String>) = (row.get(0), row.get(1));
        assert!(row.get::<_, bool>(2), "the receiver is not out");
        (code.as_deref(), id.as_deref()) == (Some("http_503"), Some("2"))
    })
    .await;
    receiver.answer(refuse("nothing"));
    eventually(PATIENCE * 2, async || no_key_is_parked(&owner).await).await;
    let accepted = receiver.accepted("h");
    assert_eq!(accepted[..6], ["1", "3", "7", "8", "9", "10"]);
    let of_a: Vec<_> = accepted.iter().filter(|id| ["2", "4", "6"].contains(&id.as_str())).collect();
    assert_eq!(of_a, ["2", "4", "6"], "in order");
    replica.stop().await;
}

// Guarantee: parked.others
#[tokio::test(flavor = "multi_thread")]
async fn more_rows_of_a_parked_key_than_a_turn_withholds_are_passed_by_several() {
    let Stage { owner, receiver, text, replica, database: _database } = stage().await;
    replica.stop().await;
    let fill = "INSERT INTO bookings (customer, payload) SELECT 'a', 'x' FROM generate_series(1, 5000)";
    owner.batch_execute(fill).await.unwrap();
    book(&owner, "c", &["last"]).await;
    let replica = Replica::start(&parse(&text.replace("rows = 50", "rows = 4000")), "r2");
    eventually(PATIENCE * 2, async || receiver.accepted("h").len() == 3).await;
    eventually(PATIENCE, async || parked(&owner, "h").await.len() == 5004).await;
    let rows: i64 = owner.query_one("SELECT sum(rows)::bigint FROM outbox.parked_key", &[]).await.unwrap().get(0);
    assert_eq!(rows, 5004, "counted as they are");
    replica.stop().await;
}

// Guarantee: parked.order
#[tokio::test(flavor = "multi_thread")]
async fn under_another_guarantee_a_relay_halts_while_keys_are_parked() {
    let Stage { owner, receiver, text, replica, database: _database } = stage().await;
    replica.stop().await;
    // Letters and parked rows are numbered apart: nothing of the one may be taken for the other.
    verb(&text, &["dead-letter", "discard", "--cursor", "h", "--yes"]).await;
    let letters = "SELECT string_agg(state, ' ' ORDER BY id) FROM outbox.dead_letter";
    let before: String = owner.query_one(letters, &[]).await.unwrap().get(0);
    let once =
        text.replace("on_poison = \"park_key\"", "guarantee = \"at_most_once\"").replace("lane = \"customer\"\n", "");
    let replica = Replica::start(&parse(&once), "r2");
    let (_, error) = halted(&owner, "h").await;
    replica.stop().await;
    assert_eq!(error["code"], "keys_parked", "{error}");
    assert_eq!(receiver.accepted("h"), ["1", "3"], "nothing is sent");
    assert_eq!(owner.query_one(letters, &[]).await.unwrap().get::<_, String>(0), before);
    verb(&text, &["cursor", "resume", "h"]).await;
    let replica = Replica::start(&parse(&text), "r3");
    eventually(PATIENCE * 2, async || receiver.accepted("h") == ["1", "3", "4", "6"]).await;
    replica.stop().await;
}

// Guarantee: parked.limits
#[tokio::test(flavor = "multi_thread")]
async fn a_seek_back_over_a_full_key_counts_no_row_twice() {
    let Stage { owner, receiver, text, replica, database: _database } = stage().await;
    replica.stop().await;
    // Key a has three rows, which is now all that may wait.
    let full = text.replace("on_poison = \"park_key\"\n", "on_poison = \"park_key\"\npark_limit = 3\n");
    let replica = Replica::start(&parse(&full), "r2");
    verb(&full, &["cursor", "seek", "h", "--beginning", "--yes"]).await;
    book(&owner, "c", &["7"]).await;
    eventually(PATIENCE * 2, async || receiver.accepted("h").last().is_some_and(|id| id == "7")).await;
    assert_eq!(receiver.accepted("h"), ["1", "3", "1", "3", "7"]);
    replica.stop().await;
}

// Guarantee: parked.kept
#[tokio::test(flavor = "multi_thread")]
async fn rows_that_are_parked_unread_hold_their_table_and_others_do_not() {
    let Stage { owner, text, replica, database: _database, .. } = stage().await;
    replica.stop().await;
    let held = "SELECT count(*) FROM outbox.hold WHERE kind = 'parked'";
    assert_eq!(owner.query_one(held, &[]).await.unwrap().get::<_, i64>(0), 0, "they were parked whole");
    let limited = text.replace("rows = 50", "rows = 50\nmax_row_bytes = \"64KiB\"");
    book(&owner, "a", &[&"x".repeat(100_000)]).await;
    let replica = Replica::start(&parse(&limited), "r2");
    eventually(PATIENCE * 2, async || parked(&owner, "h").await.len() == 5).await;
    replica.stop().await;
    assert_eq!(owner.query_one(held, &[]).await.unwrap().get::<_, i64>(0), 1);
}
