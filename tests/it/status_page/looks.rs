//! What the page costs the database, and what it is when there is much to show.

use super::*;
use crate::support::outside::printed;

/// How often the list of schedules was read: no other part of a relay of streams reads it.
async fn reads(owner: &tokio_postgres::Client) -> i64 {
    let sql = "SELECT COALESCE(seq_scan, 0) + COALESCE(idx_scan, 0) FROM pg_stat_user_tables WHERE schemaname = 'outbox' \
               AND relname = 'schedule'";
    owner.query_one(sql, &[]).await.unwrap().get(0)
}

/// The sessions of the page, and when the last of them was last asked.
async fn sessions(owner: &tokio_postgres::Client) -> (i64, Option<String>) {
    let sql = "SELECT count(*), max(query_start)::text FROM pg_stat_activity WHERE application_name = 'outbox-relay page' \
               AND datname = current_database()";
    let row = owner.query_one(sql, &[]).await.unwrap();
    (row.get(0), row.get(1))
}

// Guarantee: page.cost
#[tokio::test(flavor = "multi_thread")]
async fn many_viewers_share_a_look_and_without_viewers_the_database_is_not_asked() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let (_process, url) = running(&database, &stdout_relay("events", "")).await;
    // A replica is ready before its relay has its cursor.
    let cursors = "SELECT count(*) FROM outbox.cursor";
    eventually(PATIENCE, async || owner.query_one(cursors, &[]).await.unwrap().get::<_, i64>(0) == 1).await;
    assert_eq!(sessions(&owner).await, (0, None), "none is opened ahead");
    let before = reads(&owner).await;
    let viewers = (0..40).map(|_| page(&url));
    let begun = Instant::now();
    for html in futures_util::future::join_all(viewers).await {
        assert!(html.contains("The cursor is well"), "{html}");
    }
    let took = begun.elapsed().as_secs();
    assert_eq!(sessions(&owner).await.0, 2, "however many look");
    // The statistics of a session come a while later.
    eventually(PATIENCE * 3, async || reads(&owner).await > before).await;
    let looks = reads(&owner).await - before;
    assert!(looks <= 2 + i64::try_from(took).unwrap(), "40 viewers of {took} s cost {looks} looks");

    let (_, last) = sessions(&owner).await;
    eventually(PATIENCE * 4, async || sessions(&owner).await.0 == 0).await;
    assert!(last.is_some());
    says(&url, &["The cursor is well"]).await;
}

// Guarantee: page.cost
#[tokio::test(flavor = "multi_thread")]
async fn database_is_asked_while_a_stream_is_open_only() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let (_process, url) = running(&database, &stdout_relay("events", "")).await;
    assert_eq!(sessions(&owner).await, (0, None), "none is opened ahead");
    let stream = client().get(format!("{url}/events")).send().await.unwrap();
    assert_eq!(stream.status(), 200);
    eventually(PATIENCE, async || sessions(&owner).await.0 == 2).await;
    let (_, first) = sessions(&owner).await;
    eventually(PATIENCE, async || sessions(&owner).await.1 != first).await;
    drop(stream);
    eventually(PATIENCE * 4, async || sessions(&owner).await.0 == 0).await;
}

// Guarantee: page.audit
#[tokio::test(flavor = "multi_thread")]
async fn last_comparison_with_the_table_is_shown() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let (process, url) = running(&database, &stdout_relay("events", "")).await;
    says(&url, &["The cursor is well", "has not compared delivered rows with a table yet"]).await;
    let delivers = async |rows: usize| {
        owner.batch_execute("INSERT INTO bookings (payload) VALUES ('p')").await.unwrap();
        eventually(PATIENCE, async || printed(&process, "events").len() == rows).await;
    };
    for rows in 1..=4 {
        delivers(rows).await;
    }
    // The open slice ends with the next advance, as after a minute, and is due.
    let old = "UPDATE outbox.cursor SET audit = overlay(audit PLACING '\\x0000000000000000'::bytea FROM 2 FOR 8) \
               WHERE audit IS NOT NULL";
    eventually(PATIENCE, async || owner.execute(old, &[]).await.unwrap() > 0).await;
    delivers(5).await;
    let due = "UPDATE outbox.audit_slice SET check_at = clock_timestamp()";
    eventually(PATIENCE, async || owner.execute(due, &[]).await.unwrap() > 0).await;
    says(&url, &["<summary>1 equal</summary>", "data-label=\"Found\">equal</td>"]).await;
}

// Guarantee: page.stages
#[tokio::test(flavor = "multi_thread")]
async fn held_row_shows_a_chart_of_the_horizon_hold() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let (_process, url) = running(&database, &stdout_relay("events", "")).await;
    let mut writer = database.connect("app").await;
    let open = writer.transaction().await.unwrap();
    open.batch_execute("INSERT INTO bookings (payload) VALUES ('open')").await.unwrap();
    owner.batch_execute("INSERT INTO bookings (payload) VALUES ('waits')").await.unwrap();
    let html =
        says(&url, &["<summary>where the time goes</summary>", "\"Horizon hold in the last hour: at most "]).await;
    assert!(!html.contains("\"Publish in the last hour"), "its turn has not begun: {html}");
    open.rollback().await.unwrap();
}

// Guarantee: page.small
#[tokio::test(flavor = "multi_thread")]
async fn twenty_cursors_fit_into_60_kib_and_a_locked_table_hides_no_other() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner
        .batch_execute(
            "CREATE TABLE locked (LIKE bookings INCLUDING ALL); GRANT SELECT ON locked TO relay; \
             INSERT INTO locked (payload) VALUES ('x')",
        )
        .await
        .unwrap();
    let mut relays: String = (0..19).map(|n| stdout_relay(&format!("booking_events_{n}"), "")).collect();
    relays.push_str(&stdout_relay("others", "").replace("public.bookings", "public.locked"));
    let (_process, url) = running(&database, &relays).await;
    let html = says(&url, &["All 20 cursors are well"]).await;
    assert!(html.len() <= 60 << 10, "{} bytes", html.len());
    let mut blocker = database.connect("postgres").await;
    let lock = blocker.transaction().await.unwrap();
    lock.batch_execute("LOCK TABLE locked IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let html = says(&url, &["1 of 20 needs attention"]).await;
    assert!(html.contains(">booking_events_18</th>") && !html.contains("PostgreSQL"), "{html}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_cursors_are_shown_and_the_next_viewer_waits_for_no_look() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner
        .batch_execute(
            "INSERT INTO outbox.cursor (name, relay, identity, relations) SELECT 'c' || n, 'c' || n, '{\"table\": \"a\"}', '{1,1}' \
             FROM generate_series(1, 1000) AS n",
        )
        .await
        .unwrap();
    let (_process, url) = running(&database, &stdout_relay("events", "")).await;
    let html = says(&url, &["of 1001 need attention"]).await;
    assert!(html.contains("<th role=rowheader scope=row>c1000</th>"));
    let mut times = Vec::new();
    for _ in 0..10 {
        let begun = Instant::now();
        page(&url).await;
        times.push(begun.elapsed());
    }
    times.sort();
    println!("{} bytes, {times:?}", html.len());
    assert!(times[0] < Duration::from_millis(500), "an unoptimized build on a busy machine: {times:?}");
}
