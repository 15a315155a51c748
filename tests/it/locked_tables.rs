//! Sessions that lock tables as a whole: the source, by ALTER TABLE for example, or those of the schema outbox.

use std::time::Duration;

use tokio_postgres::Client;

use crate::support::outside::{json, stdout_relay};
use crate::support::{CLOCK, PATIENCE, Process, bookings, database, eventually, outbox_relay, toml};

async fn run(client: &Client, sql: &str) {
    client.batch_execute(sql).await.unwrap();
}

// Guarantee: commands.why-locked
#[tokio::test(flavor = "multi_thread")]
async fn why_names_the_session_that_locks_a_table_and_what_ends_it() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("a", ""));
    let process = Process::spawn(&text, &["run"]);
    run(&owner, "INSERT INTO public.bookings DEFAULT VALUES").await;
    eventually(PATIENCE, async || process.out().lines().count() == 1).await;
    for table in ["public.bookings", "outbox.cursor", "outbox.dead_letter"] {
        let other = database.connect("postgres").await;
        let pid: i32 = other.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
        run(&other, &format!("SET application_name = 'deploy'; BEGIN; LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE"))
            .await;
        let (code, out, log) = outbox_relay(&text, &["cursor", "why", "a", "-o", "json"]).await;
        let document = json(&out);
        println!("{document}");
        assert_eq!((code, &document["reason"]), (Some(3), &"locked".into()), "{out}{log}");
        let summary = document["summary"].as_str().unwrap();
        assert!(summary.contains(&format!("pid {pid} (deploy)")) && summary.contains(table), "{summary}");
        let fix = document["next_steps"][1].as_str().unwrap();
        assert_eq!(fix, format!("SELECT pg_terminate_backend({pid});"));
        // What is printed works.
        run(&owner, fix).await;
        eventually(PATIENCE, async || {
            let (_, out, _) = outbox_relay(&text, &["cursor", "why", "a", "-o", "json"]).await;
            json(&out)["ok"] == true
        })
        .await;
    }
}

// Guarantee: failures.share-lock
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_lets_the_cursor_be_read_and_not_written_has_no_row_repeated() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("a", ""));
    let process = Process::spawn(&text, &["run"]);
    run(&owner, "INSERT INTO public.bookings DEFAULT VALUES").await;
    eventually(PATIENCE, async || process.out().lines().count() == 1).await;
    let other = database.connect("postgres").await;
    run(&other, "BEGIN; LOCK TABLE outbox.cursor IN SHARE MODE").await;
    run(&owner, "INSERT INTO public.bookings DEFAULT VALUES").await;
    let failed = || process.log().matches("55P03").count();
    eventually(PATIENCE * 2, async || failed() >= 2).await;
    assert_eq!(process.out().lines().count(), 1, "nothing is published that cannot be recorded");
    run(&other, "ROLLBACK").await;
    eventually(PATIENCE, async || process.out().lines().count() == 2).await;
    tokio::time::sleep(Duration::from_secs(1)).await; // a repetition would have come
    assert_eq!(process.out().lines().count(), 2);
}
