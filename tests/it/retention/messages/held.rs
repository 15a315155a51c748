//! Rows below a cursor's position that it has not seen yet: they hold their day, whatever happens while that is asked.

use super::*;

const UNSEEN: &str = "rows that cursor m could not see at its last read";

// Guarantee: retention.drop
#[tokio::test(flavor = "multi_thread")]
async fn row_that_becomes_a_dead_letter_between_two_questions_holds_its_day() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    let day = aged(&owner).await;
    let mut process = Process::spawn(&served(&text(&database, "relay", &["m"])), &["run"]);
    // Its position stays in the day, so that both questions read it.
    passed(&owner, &process, "m", 2).await;
    process.signal(Signal::TERM);
    assert_eq!(process.wait().await, Some(0), "{}", process.log());
    late(&owner, 0).await;

    let turn = database.connect("postgres").await;
    turn.batch_execute(&format!("BEGIN; LOCK TABLE outbox.{day} IN ACCESS EXCLUSIVE MODE")).await.unwrap();
    let asking = database.connect("postgres").await;
    let pid: i32 = asking.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    let ask = "SELECT outbox.message_held($1, true)";
    let name = day.clone();
    let asked = tokio::spawn(async move { asking.query_one(ask, &[&name]).await.unwrap().get::<_, Option<String>>(0) });
    let waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE pid = $1 AND NOT granted)";
    eventually(PATIENCE, async || owner.query_one(waits, &[&pid]).await.unwrap().get(0)).await;
    // What a turn does that finds the row: the dead letter and the snapshot that sees it become visible together.
    turn.batch_execute(
        "INSERT INTO outbox.dead_letter (cursor, source, created_at, message_id, sink, target, fields, field_values, \
         error, state, dead_lettered_by) SELECT 'm', 'outbox.message', created_at, '3', 'stdout', 'x', '{}', '{}', \
         '{}', 'redriving', 'x' FROM outbox.message WHERE id = 3; \
         UPDATE outbox.cursor SET snapshot = pg_current_snapshot(); COMMIT",
    )
    .await
    .unwrap();
    assert_eq!(asked.await.unwrap().as_deref(), Some(UNSEEN));
    let held: Option<String> = owner.query_one(ask, &[&day]).await.unwrap().get(0);
    assert_eq!(held.as_deref(), Some("1 open dead letters of cursor m"), "and the letter afterwards");
}

// Guarantee: retention.drop
#[tokio::test(flavor = "multi_thread")]
async fn day_with_late_row_is_held_by_a_cursor_that_has_not_read_yet() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    let day = aged(&owner).await;
    let text = text(&database, "relay", &["m"]);
    let (code, _, log) = outbox_relay(&text, &["cursor", "create", "m", "--now"]).await;
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(holder(&text, &day).await, None, "it begins after the rows that are there");
    late(&owner, 0).await;
    assert_eq!(holder(&text, &day).await.as_deref(), Some(UNSEEN));
    let process = Process::spawn(&served(&text), &["run"]);
    eventually(PATIENCE * 4, async || printed(&process, "m") == ["3"] && holder(&text, &day).await.is_none()).await;
}
