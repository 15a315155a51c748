//! `cursor seek` and `cursor create`.

use super::{ends, insert, operation};
use crate::support::gateway::{Gateway, Mood, sms_relay};
use crate::support::outside::{halted, printed, standing, stdout_relay};
use crate::support::{CLOCK, PATIENCE, Process, bookings, database, eventually, toml};

// Guarantee: commands.preview
#[tokio::test(flavor = "multi_thread")]
async fn a_seek_shows_the_rows_first_does_nothing_unasked_and_moves_a_running_relay() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("s", ""));
    let process = Process::spawn(&text, &["run"]);
    insert(&owner, 5).await;
    eventually(PATIENCE, || async { printed(&process, "s").len() == 5 }).await;
    let stands = "SELECT EXISTS (SELECT FROM outbox.cursor WHERE position_id = '5')";
    eventually(PATIENCE, || async { owner.query_one(stands, &[]).await.unwrap().get(0) }).await;

    let (out, log) = ends(2, &text, &["cursor", "seek", "s", "--after-id", "2"]).await;
    assert!(
        out.contains("sent again: 3 rows, first (") && out.contains(", 3), last (") && out.contains(", 5)"),
        "{out}"
    );
    assert!(log.contains("add --yes to do it without confirmation, or --dry-run"), "{log}");
    let (again, log) = ends(0, &text, &["cursor", "seek", "s", "--after-id", "2", "--dry-run"]).await;
    assert_eq!((again, log.as_str()), (out, "dry run: nothing was done\n"));
    let changes: i64 = owner.query_one("SELECT count(*) FROM outbox.control", &[]).await.unwrap().get(0);
    assert_eq!((changes, operation(&owner, "cursor seek").await), (0, None), "nothing was written");

    let (out, _) = ends(0, &text, &["cursor", "seek", "s", "--after-id", "2", "--yes"]).await;
    assert!(out.contains("s: moved to (") && out.contains(", 2)\n"), "{out}");
    eventually(PATIENCE, || async { printed(&process, "s").len() == 8 }).await;
    assert_eq!(printed(&process, "s")[5..], ["3", "4", "5"]);
    let detail = operation(&owner, "cursor seek").await.unwrap();
    assert_eq!((&detail["sent_again"], &detail["passed_over"]), (&3.into(), &0.into()));
    assert_eq!((&detail["from"]["id"], &detail["to"]["id"]), (&"5".into(), &"2".into()));
    assert_eq!(operation(&owner, "change applied").await.unwrap()["moved"], true);

    ends(0, &text, &["cursor", "seek", "s", "--beginning", "--yes"]).await;
    eventually(PATIENCE, || async { printed(&process, "s").len() == 13 }).await;
    let (_, log) = ends(1, &text, &["cursor", "seek", "s", "--after-id", "77", "--yes"]).await;
    assert!(log.contains("public.bookings has no row with the id 77"), "{log}");
    let (_, log) = ends(2, &text, &["cursor", "seek", "nosuch", "--beginning", "--yes"]).await;
    assert_eq!(log, "error: no relay nosuch is configured; configured are: s\n");
}

// Guarantee: commands.seek
#[tokio::test(flavor = "multi_thread")]
async fn a_seek_reaches_a_paused_cursor_and_publishes_nothing_before_it_is_resumed() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("s", ""));
    let process = Process::spawn(&text, &["run"]);
    insert(&owner, 1).await;
    eventually(PATIENCE, || async { printed(&process, "s") == ["1"] }).await;
    ends(0, &text, &["cursor", "pause", "s"]).await;
    insert(&owner, 9).await;
    let (out, log) = ends(0, &text, &["cursor", "seek", "s", "--after-id", "8", "--yes"]).await;
    assert!(out.contains("passed over, never sent: 7 rows, first (") && out.contains("s: moved to ("), "{out}");
    assert_eq!(log, "s is still paused: `outbox-relay cursor resume s` lets it go on\n");
    assert_eq!(printed(&process, "s"), ["1"]);
    ends(0, &text, &["cursor", "resume", "s"]).await;
    eventually(PATIENCE, || async { printed(&process, "s").len() > 2 }).await;
    assert_eq!(printed(&process, "s"), ["1", "9", "10"]);
}

// Guarantee: commands.seek
#[tokio::test(flavor = "multi_thread")]
async fn a_seek_reaches_a_halted_cursor_which_stays_halted() {
    let (database, gateway) = (database().await, Gateway::start().await);
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute("ALTER TABLE bookings ADD phone text DEFAULT '+1'").await.unwrap();
    gateway.set(Mood::Refuse(400, r#"{"code":21211}"#));
    let text = toml(&database, "relay", None, &sms_relay("sms", &gateway, ""));
    insert(&owner, 3).await;
    let _process = Process::spawn(&text, &["run"]);
    halted(&owner, "sms").await;
    gateway.set(Mood::Accept);
    let (out, log) = ends(0, &text, &["cursor", "seek", "sms", "--now", "--yes"]).await;
    assert!(out.contains("passed over, never sent: 3 rows"), "{out}");
    assert!(log.contains("sms is still halted"), "{log}");
    assert!(standing(&owner, "sms").await.unwrap().1, "still halted");
    insert(&owner, 1).await;
    ends(0, &text, &["cursor", "resume", "sms"]).await;
    eventually(PATIENCE, || async { gateway.accepted() == ["4"] }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_replica_a_seek_is_stored_and_the_first_turn_carries_it_out() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("s", ""));
    insert(&owner, 3).await;
    ends(0, &text, &["run", "--once"]).await;
    let (_, log) = ends(0, &text, &["cursor", "seek", "s", "--after-id", "2", "--yes"]).await;
    assert_eq!(log, "", "nothing waits yet");
    let (out, log) = ends(0, &text, &["cursor", "seek", "s", "--after-id", "1", "--yes"]).await;
    assert!(log.starts_with("an earlier change of s is pending: this one replaces it"), "{log}");
    assert!(out.ends_with("s: no replica is running: the change is stored, and the next turn applies it\n"), "{out}");
    let process = Process::spawn(&text, &["run"]);
    eventually(PATIENCE, || async { printed(&process, "s") == ["2", "3"] }).await;
}

// Guarantee: commands.uncommitted
#[tokio::test(flavor = "multi_thread")]
async fn now_is_refused_while_nobody_can_say_what_is_safe_to_pass() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("s", ""));
    insert(&owner, 1).await;
    ends(0, &text, &["run", "--once"]).await;
    let mut writer = database.connect("app").await;
    let pid: i32 = writer.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    let open = writer.transaction().await.unwrap();
    open.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    let (_, log) = ends(1, &text, &["cursor", "seek", "s", "--now", "--yes"]).await;
    assert!(log.contains(&format!("pid {pid} is writing public.bookings since before this look")), "{log}");
    // A role that may see when the transaction began goes to just below it, and the row is not lost.
    let stats = toml(&database, "relay_stats", None, &stdout_relay("s", ""));
    ends(0, &stats, &["cursor", "seek", "s", "--now", "--yes"]).await;
    open.commit().await.unwrap();
    let (out, _) = ends(0, &text, &["run", "--once"]).await;
    assert!(out.contains("\"id\":\"2\""), "{out}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seek_accepts_the_clock_after_it_was_set_back() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("s", ""));
    let process = Process::spawn(&text, &["run"]);
    insert(&owner, 2).await;
    eventually(PATIENCE, || async { printed(&process, "s") == ["1", "2"] }).await;
    let stands = "SELECT EXISTS (SELECT FROM outbox.cursor WHERE position_id = '2')";
    eventually(PATIENCE, || async { owner.query_one(stands, &[]).await.unwrap().get(0) }).await;
    // The same as a clock that was an hour ahead, and is right again.
    owner.batch_execute("UPDATE outbox.cursor SET observed_at = clock_timestamp() + interval '1 hour'").await.unwrap();
    insert(&owner, 1).await;
    let (out, _) = ends(3, &text, &["cursor", "why", "s"]).await;
    assert!(out.starts_with("PostgreSQL's clock has stepped back: s waits until"), "{out}");
    ends(0, &text, &["cursor", "seek", "s", "--after-id", "1", "--yes"]).await;
    eventually(PATIENCE, || async { printed(&process, "s").len() > 3 }).await;
    assert_eq!(printed(&process, "s"), ["1", "2", "2", "3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_is_created_where_asked_before_its_relay_first_runs_and_only_once() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("s", ""));
    insert(&owner, 3).await;
    let (out, _) = ends(0, &text, &["cursor", "create", "s", "--after-id", "2"]).await;
    assert!(out.starts_with("s: created at (") && out.ends_with(", 2); 1 committed row lies after it\n"), "{out}");
    assert_eq!(operation(&owner, "cursor create").await.unwrap()["at"]["id"], "2");
    let (_, log) = ends(1, &text, &["cursor", "create", "s", "--beginning"]).await;
    assert!(log.contains("the cursor s exists already"), "{log}");
    let (out, _) = ends(0, &text, &["run", "--once"]).await;
    assert!(out.lines().count() == 1 && out.contains("\"id\":\"3\""), "{out}");
}

// Guarantee: commands.preview
#[tokio::test(flavor = "multi_thread")]
async fn on_a_terminal_a_verb_asks_and_only_a_yes_lets_it_go_on() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("s", ""));
    insert(&owner, 3).await;
    ends(0, &text, &["run", "--once"]).await;
    for (typed, code, said, changes) in [("n\n", 1, "nothing was done", 0), ("y\n", 0, "no replica is running", 1)] {
        let (found, screen) = on_a_terminal(&text, "cursor seek s --beginning", typed).await;
        assert!(screen.contains("sent again: 3 rows") && screen.contains("Move s? [y/N] "), "{screen}");
        assert!(screen.contains(said), "{screen}");
        assert_eq!(found, Some(code), "{screen}");
        let stored: i64 = owner.query_one("SELECT count(*) FROM outbox.control", &[]).await.unwrap().get(0);
        assert_eq!(stored, changes);
    }
}

/// Runs a verb on a pseudo-terminal, which `script` of util-linux makes, and types this.
async fn on_a_terminal(text: &str, verb: &str, typed: &str) -> (Option<i32>, String) {
    use tokio::io::AsyncWriteExt as _;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("outbox-relay.toml");
    std::fs::write(&file, text).unwrap();
    let command = format!("{} --config {} {verb}", env!("CARGO_BIN_EXE_outbox-relay"), file.display());
    let mut child = tokio::process::Command::new("script")
        .args(["--quiet", "--return", "--command", &command, "/dev/null"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("script (package bsdutils) makes a terminal");
    let mut input = child.stdin.take().unwrap();
    input.write_all(typed.as_bytes()).await.unwrap();
    let ended = child.wait_with_output().await.unwrap();
    drop(input);
    (ended.status.code(), String::from_utf8_lossy(&ended.stdout).into_owned())
}
