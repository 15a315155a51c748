//! Where a new relay begins, and that one whose cursor is there waits for nothing.

use tokio_postgres::Client;

use crate::support::outside::{get, line, lines, listener, printed, stdout_relay};
use crate::support::{CLOCK, Database, PATIENCE, Process, bookings, database, eventually, outbox_relay, toml};

const WARNING: &str = "cursor created while transactions whose start cannot be read were writing";

/// A session that has inserted a row and not committed it; its process id.
async fn open(database: &Database) -> (Client, i32) {
    let writer = database.connect("app").await;
    let pid = writer.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    writer.batch_execute("BEGIN; INSERT INTO bookings (payload) VALUES ('w-open')").await.unwrap();
    (writer, pid)
}

/// Waits until a replica has scanned who is writing.
async fn scanned(owner: &Client) {
    let sql = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE application_name LIKE 'outbox-relay/%' \
               AND query LIKE '%pg_lock_status%RowExclusiveLock%' AND state = 'idle' AND datname = current_database())";
    eventually(PATIENCE * 2, || async { owner.query_one(sql, &[]).await.unwrap().get(0) }).await;
}

// Guarantee: horizon.start-now
#[tokio::test(flavor = "multi_thread")]
async fn start_now_begins_at_the_first_look() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let (writer, pid) = open(&database).await;
    let text = toml(&database, "relay", None, &stdout_relay("s", "start = \"now\""));
    let process = Process::spawn(&text, &["run"]);
    scanned(&owner).await;
    owner.batch_execute("INSERT INTO bookings (payload) VALUES ('x1'), ('x2')").await.unwrap();
    // The cursor is there before the writer ends, and it is said what is left out, and why nothing comes yet.
    let warning = line(&process, WARNING).await;
    assert_eq!((&warning["level"], &warning["cursor"]), (&"WARN".into(), &"s".into()), "{warning}");
    assert!(warning["writers"].as_str().unwrap().contains(&format!("pid {pid}")), "{warning}");
    line(&process, "relay ready").await;
    let (_, why, log) = outbox_relay(&text, &["cursor", "why", "s"]).await;
    assert!(why.starts_with(&format!("s is held by pid {pid} (")), "{why}{log}");
    assert!(printed(&process, "s").is_empty(), "{}", process.out());
    writer.batch_execute("COMMIT").await.unwrap();
    eventually(PATIENCE, || async { printed(&process, "s") == ["2", "3"] }).await;
    let warnings = lines(&process).into_iter().filter(|line| line["message"] == WARNING).count();
    assert_eq!(warnings, 1, "{}", process.log());
}

// Guarantee: horizon.start-now
#[tokio::test(flavor = "multi_thread")]
async fn start_now_includes_writers_of_known_start() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    // Further before the writer than the latency window.
    let before =
        "INSERT INTO bookings (payload, created_at) VALUES ('before', clock_timestamp() - interval '1 minute')";
    owner.batch_execute(before).await.unwrap();
    let (writer, _) = open(&database).await;
    let text = toml(&database, "relay_stats", None, &stdout_relay("s", "start = \"now\""));
    let process = Process::spawn(&text, &["run"]);
    line(&process, "relay ready").await;
    owner.batch_execute("INSERT INTO bookings (payload) VALUES ('x1')").await.unwrap();
    writer.batch_execute("COMMIT").await.unwrap();
    eventually(PATIENCE, || async { printed(&process, "s") == ["2", "3"] }).await;
    assert!(lines(&process).iter().all(|line| line["message"] != WARNING), "{}", process.log());
}

// Guarantee: horizon.ready
#[tokio::test(flavor = "multi_thread")]
async fn replica_with_a_cursor_waits_for_no_writer() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("s", "start = \"now\""));
    assert_eq!(outbox_relay(&text, &["run", "--once"]).await.0, Some(0));
    let (writer, _) = open(&database).await;
    owner.batch_execute("INSERT INTO bookings (payload) VALUES ('x1')").await.unwrap();
    let process = Process::spawn(&text, &["run"]);
    line(&process, "relay ready").await;
    let metrics = format!("{}/metrics", listener(&process).await);
    let lag = "outbox_relay_cursor_backlog_rows{cursor=\"s\"";
    eventually(PATIENCE * 2, || async { get(&metrics).await.1.lines().any(|line| line.starts_with(lag)) }).await;
    assert!(printed(&process, "s").is_empty() && lines(&process).iter().all(|line| line["message"] != WARNING));
    writer.batch_execute("COMMIT").await.unwrap();
    eventually(PATIENCE, || async { printed(&process, "s") == ["1", "2"] }).await;
}

// Guarantee: horizon.start-now
#[tokio::test(flavor = "multi_thread")]
async fn start_now_keeps_rows_of_failed_checks() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(
        &database,
        "relay",
        None,
        "[[relay]]\nname = \"s\"\nstart = \"now\"\n[relay.source.stream]\ntable = \"public.bookings\"\n\
         [relay.sink.sql]\nstatement = \"INSERT INTO public.copies VALUES ($1)\"\nparameters = [\"id\"]\n",
    );
    owner.batch_execute("INSERT INTO bookings (payload) VALUES ('before')").await.unwrap();
    let process = Process::spawn(&text, &["run"]);
    line(&process, "relay cannot run; it is checked every 5 s").await;
    owner
        .batch_execute(
            "INSERT INTO bookings (payload) VALUES ('x1'); CREATE TABLE copies (id bigint PRIMARY KEY); \
             GRANT INSERT, SELECT ON copies TO relay",
        )
        .await
        .unwrap();
    let copied = "SELECT COALESCE(string_agg(id::text, ','), '') FROM copies";
    let is_copied = || async { owner.query_one(copied, &[]).await.unwrap().get::<_, String>(0) == "2" };
    eventually(PATIENCE * 2, is_copied).await;
}
