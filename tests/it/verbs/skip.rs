//! `cursor skip`: exactly one message, and only the one that was seen.

use outbox_relay::cursor::{Fate, Order, fate, order};
use outbox_relay::position::{Position, Timestamp};
use tokio_postgres::Client;

use super::{ends, insert, operation};
use crate::support::gateway::{Gateway, Mood, sms_relay};
use crate::support::outside::{fixed, halted, printed, stdout_relay};
use crate::support::{CLOCK, Database, PATIENCE, Process, bookings, database, eventually, toml};

/// An SMS relay that has sent row 1 and is halted at row 2, with row 3 behind it; the gateway accepts again.
async fn poisoned(database: &Database, gateway: &Gateway) -> (Client, String, Process) {
    let owner = bookings(database, CLOCK).await;
    owner.batch_execute("ALTER TABLE bookings ADD phone text DEFAULT '+1'").await.unwrap();
    let text = toml(database, "relay", None, &sms_relay("sms", gateway, ""));
    let process = Process::spawn(&text, &["run"]);
    insert(&owner, 1).await;
    eventually(PATIENCE * 2, || async { gateway.accepted() == ["1"] }).await;
    gateway.set(Mood::Refuse(400, r#"{"code":21211}"#));
    insert(&owner, 2).await;
    let (message_id, _) = halted(&owner, "sms").await;
    assert_eq!(message_id.as_deref(), Some("2"));
    gateway.set(Mood::Accept);
    (owner, text, process)
}

// Guarantee: commands.skip
#[tokio::test(flavor = "multi_thread")]
async fn skip_passes_the_message_that_a_cursor_is_halted_at_and_the_rest_goes_on() {
    let (database, gateway) = (database().await, Gateway::start().await);
    let (owner, text, _process) = poisoned(&database, &gateway).await;
    let (out, log) = ends(2, &text, &["cursor", "skip", "sms"]).await;
    assert!(
        out.starts_with("passed over, never sent: row 2 of public.bookings, (") && log.contains("--yes"),
        "{out}{log}"
    );
    let (_, log) = ends(1, &text, &["cursor", "skip", "sms", "--id", "3", "--yes"]).await;
    assert!(log.contains("row 3 does not come next in sms: the next is 2, ("), "{log}");
    assert_eq!(gateway.accepted(), ["1"]);
    let (out, _) = ends(0, &text, &["cursor", "skip", "sms", "--yes"]).await;
    assert!(out.ends_with("sms: row 2 is passed over\n"), "{out}");
    fixed(&owner, "sms").await;
    eventually(PATIENCE, || async { gateway.accepted() == ["1", "3"] }).await;
    let detail = operation(&owner, "cursor skip").await.unwrap();
    assert_eq!((&detail["id"], &detail["from"]["id"]), (&"2".into(), &"1".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_skip_reaches_a_paused_cursor_which_stays_paused() {
    let (database, gateway) = (database().await, Gateway::start().await);
    let (owner, text, _process) = poisoned(&database, &gateway).await;
    ends(0, &text, &["cursor", "pause", "sms"]).await;
    ends(0, &text, &["cursor", "skip", "sms", "--id", "2", "--yes"]).await;
    let stands = "SELECT position_id FROM outbox.cursor WHERE name = 'sms'";
    assert_eq!(owner.query_one(stands, &[]).await.unwrap().get::<_, String>(0), "2");
    assert_eq!(gateway.accepted(), ["1"]);
    ends(0, &text, &["cursor", "resume", "sms"]).await;
    eventually(PATIENCE, || async { gateway.accepted() == ["1", "3"] }).await;
}

// Guarantee: commands.skip
#[tokio::test(flavor = "multi_thread")]
async fn a_conditional_change_moves_nothing_when_the_cursor_stands_elsewhere_by_then() {
    let database = database().await;
    let mut owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("s", ""));
    let process = Process::spawn(&text, &["run"]);
    insert(&owner, 4).await;
    eventually(PATIENCE, || async { printed(&process, "s").len() == 4 }).await;
    let stands = "SELECT EXISTS (SELECT FROM outbox.cursor WHERE position_id = '4')";
    eventually(PATIENCE, || async { owner.query_one(stands, &[]).await.unwrap().get(0) }).await;
    let row = |id: &'static str| {
        let owner = &owner;
        async move {
            let sql = "SELECT created_at FROM bookings WHERE id::text = $1";
            let created_at: Timestamp = owner.query_one(sql, &[&id]).await.unwrap().get(0);
            Position { created_at, id: Some(id.to_owned()) }
        }
    };
    let (first, second) = (row("1").await, row("2").await);
    let before_all = Order { to: Some(&first), from: Some(None), ..Order::default() };
    let elsewhere = Order { to: Some(&second), from: Some(Some(&first)), ..Order::default() };
    for change in [before_all, elsewhere] {
        let detail = serde_json::json!({});
        let number = order(&mut owner, "s", &change, ("test", "test", &detail)).await.unwrap().unwrap();
        eventually(PATIENCE, || async { fate(&owner, "s", number).await.unwrap() != Fate::Waiting }).await;
        assert_eq!(fate(&owner, "s", number).await.unwrap(), Fate::Stayed);
    }
    insert(&owner, 1).await;
    eventually(PATIENCE, || async { printed(&process, "s").len() > 4 }).await;
    assert_eq!(printed(&process, "s"), ["1", "2", "3", "4", "5"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn change_whose_place_another_takes_is_not_said_to_be_done() {
    let database = database().await;
    let mut owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("s", ""));
    let process = Process::spawn(&text, &["run"]);
    insert(&owner, 2).await;
    eventually(PATIENCE, || async { printed(&process, "s") == ["1", "2"] }).await;
    let (lock, watcher) = (owner.transaction().await.unwrap(), database.connect("postgres").await);
    lock.batch_execute("SELECT FROM outbox.cursor FOR UPDATE").await.unwrap();
    let first = Process::spawn(&text, &["cursor", "seek", "s", "--beginning", "--yes", "--timeout", "60s"]);
    let stored = "SELECT EXISTS (SELECT FROM outbox.control WHERE seek_seq = 1)";
    eventually(PATIENCE, || async { watcher.query_one(stored, &[]).await.unwrap().get(0) }).await;
    ends(0, &text, &["cursor", "seek", "s", "--now", "--yes", "--no-wait"]).await;
    lock.rollback().await.unwrap();
    let mut first = first;
    assert_eq!(first.wait().await, Some(1), "{}", first.log());
    assert!(first.log().contains("nothing was done: before a turn carried this change out"), "{}", first.log());
}

// Guarantee: commands.uncommitted
#[tokio::test(flavor = "multi_thread")]
async fn skip_is_refused_where_it_could_pass_rows_that_are_not_committed_yet() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay_stats", None, &stdout_relay("s", ""));
    insert(&owner, 1).await;
    ends(0, &text, &["run", "--once"]).await;
    let (_, log) = ends(1, &text, &["cursor", "skip", "s", "--yes"]).await;
    assert!(log.contains("s is not halted at a message, so say which one"), "{log}");
    let (_, log) = ends(1, &text, &["cursor", "skip", "s", "--id", "9", "--yes"]).await;
    assert!(log.contains("s has no row in front of it"), "{log}");
    let mut writer = database.connect("app").await;
    let open = writer.transaction().await.unwrap();
    open.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    insert(&owner, 1).await;
    let (_, log) = ends(1, &text, &["cursor", "skip", "s", "--id", "3", "--yes"]).await;
    assert!(log.contains("row 3 is above the horizon"), "{log}");
    open.commit().await.unwrap();
    let (out, _) = ends(0, &text, &["run", "--once"]).await;
    assert_eq!(out.lines().count(), 2, "{out}");
}
