//! `check --observe`: what lag is achievable, and what stands in its way.

use super::{ends, insert};
use crate::support::outside::{finding, json, stdout_relay};
use crate::support::{CLOCK, PATIENCE, Process, bookings, database, eventually, toml};

#[tokio::test(flavor = "multi_thread")]
async fn observing_names_the_longest_writer_the_growth_and_the_lag_that_is_achievable() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay_stats", None, &stdout_relay("s", ""));
    let mut check = Process::spawn(&text, &["check", "--observe", "4s", "-o", "json"]);
    eventually(PATIENCE * 2, || async { check.log().contains("observing: 0 s of 4 s") }).await;
    let mut writer = database.connect("app").await;
    writer.batch_execute("SET application_name = 'slow-import'").await.unwrap();
    let pid: i32 = writer.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    let open = writer.transaction().await.unwrap();
    open.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    insert(&owner, 7).await;
    eventually(PATIENCE, || async { check.log().contains("1 writers seen") || check.log().contains("2 writers seen") })
        .await;
    open.commit().await.unwrap();
    assert_eq!(check.wait().await, Some(0), "{}", check.log());
    let document = json(&check.out());
    let message = |code: &str| finding(&document, code).expect(code)["message"].as_str().unwrap().to_owned();
    let holds = message("observed_holds");
    assert!(holds.contains(&format!("(pid {pid}, slow-import)")), "{holds}");
    assert!(message("observed_growth").starts_with("public.bookings grew by 8 rows, "), "{document}");
    assert_eq!(message("observed_created_at"), "no row of public.bookings came below what was safe to read");
    let lag = message("observed_lag");
    assert!(lag.contains("at the median") && lag.contains("of which latency_window is 5.0 ms"), "{lag}");
    assert!(message("observed_snapshot").contains("snapshot"), "{document}");
}

// Guarantee: commands.observe
#[tokio::test(flavor = "multi_thread")]
async fn observing_finds_rows_with_a_created_at_of_their_own_and_ends_with_3() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    insert(&owner, 20).await;
    let text = toml(&database, "relay", None, &stdout_relay("s", ""));
    let mut check = Process::spawn(&text, &["check", "--observe", "4s", "-o", "json"]);
    eventually(PATIENCE * 2, || async { check.log().contains("observing: 0 s of 4 s") }).await;
    let explicit = "INSERT INTO bookings (created_at) VALUES (clock_timestamp() - interval '1 hour'), \
                    (clock_timestamp() + interval '1 hour')";
    owner.batch_execute(explicit).await.unwrap();
    assert_eq!(check.wait().await, Some(3), "{}", check.log());
    let document = json(&check.out());
    let found = finding(&document, "observed_created_at").unwrap();
    assert_eq!(found["level"], "error");
    assert!(
        found["message"].as_str().unwrap().starts_with("1 rows of public.bookings came with a created_at"),
        "{found}"
    );
    let ahead = finding(&document, "observed_created_at_ahead").unwrap();
    assert_eq!(ahead["level"], "warn", "{document}");
    let (out, log) = ends(0, &text, &["check", "--observe", "1s"]).await;
    assert!(out.contains("observed_lag") && log.starts_with("observing: 0 s of 1 s"), "{out}{log}");
}
