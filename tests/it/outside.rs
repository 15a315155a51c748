//! What a running process shows: probes, metrics, logs.

use std::time::Instant;

use outbox_testkit::postgres::{login, password};
use rustix::process::Signal;
use serde_json::Value;

use crate::support::gateway::{Gateway, sms_relay};
use crate::support::outside::{get, halted, line, lines, listener, printed, promtool, stdout_relay};
use crate::support::{CLOCK, PATIENCE, Process, bookings, database, eventually, outbox_relay, toml, unique};

#[tokio::test(flavor = "multi_thread")]
async fn probes_and_metrics_of_a_running_process_are_clean_and_logs_are_json_without_a_line_per_row() {
    let (database, gateway) = (database().await, Gateway::start().await);
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute("ALTER TABLE bookings ADD phone text DEFAULT '+1'").await.unwrap();
    let relays = format!("{}{}", stdout_relay("s", ""), sms_relay("sms", &gateway, ""));
    let text = toml(&database, "relay", None, &relays);
    let mut process = Process::spawn(&text, &["run"]);
    let listener = listener(&process).await;
    eventually(PATIENCE, || async { get(&format!("{listener}/readyz")).await == (200, "ready\n".to_owned()) }).await;
    assert_eq!(get(&format!("{listener}/livez")).await, (200, "alive\n".to_owned()));
    assert_eq!(get(&format!("{listener}/nothing")).await.0, 404);
    owner.batch_execute("INSERT INTO bookings (payload) SELECT 'p' FROM generate_series(1, 50)").await.unwrap();
    eventually(PATIENCE * 2, || async { gateway.accepted().len() >= 50 }).await;
    eventually(PATIENCE, || async { printed(&process, "s").len() == 50 }).await;
    owner.batch_execute("INSERT INTO bookings (phone) VALUES (NULL)").await.unwrap();
    halted(&owner, "sms").await;
    let metrics = || async { get(&format!("{listener}/metrics")).await.1 };
    // The two relays are independent: each shows its last row in its own time.
    let shown = [
        "outbox_relay_cursor_halted{cursor=\"sms\"} 1",
        "outbox_relay_published_rows_total{cursor=\"s\",sink=\"stdout\"} 51",
        "outbox_relay_cursor_held{cursor=\"s\"} 0",
    ];
    eventually(PATIENCE, || async {
        let metrics = metrics().await;
        shown.iter().all(|line| metrics.contains(line))
    })
    .await;
    let metrics = metrics().await;
    promtool(&metrics);
    assert!(!metrics.lines().any(|line| line.starts_with("# TYPE") && line.ends_with("summary")), "{metrics}");
    for (name, labels) in [
        ("published_rows_total", "{cursor=\"s\",sink=\"stdout\"} 51"),
        ("published_rows_total", "{cursor=\"sms\",sink=\"sms\"} 50"),
        ("publish_errors_total", "{cursor=\"sms\",sink=\"sms\",reason=\"poison\"} 1"),
        ("cursor_lag_seconds", "{cursor=\"s\"} "),
        ("cursor_backlog_rows", "{cursor=\"s\"} "),
        ("cursor_observed_timestamp_seconds", "{cursor=\"s\"} "),
        ("cursor_last_advance_timestamp_seconds", "{cursor=\"s\"} "),
        ("cursor_held", "{cursor=\"s\"} 0"),
        ("cursor_paused", "{cursor=\"s\"} 0"),
        ("cursor_clock_regression", "{cursor=\"s\"} 0"),
        ("horizon_hold_seconds", "{cursor=\"s\"} "),
        ("ambiguous_total", "{cursor=\"sms\",sink=\"sms\"} 0"),
        ("redelivered_rows_total", "{cursor=\"sms\",sink=\"sms\"} 0"),
        ("turns_total", "{cursor=\"s\",result=\"relayed\"} "),
        ("turn_duration_seconds_count", "{table=\"public.bookings\",phase=\"publish\"} "),
        ("delivery_latency_seconds_count", "{cursor=\"s\",sink=\"stdout\"} "),
        ("db_pool_connections", "{state=\"idle\"} "),
        ("build_info", "{"),
    ] {
        let start = format!("outbox_relay_{name}{labels}");
        let family: Vec<_> = metrics.lines().filter(|line| line.contains(name)).take(12).collect();
        assert!(metrics.lines().any(|line| line.starts_with(&start)), "{start} in {family:#?}");
    }
    process.signal(Signal::TERM);
    assert_eq!(process.wait().await, Some(0));

    let log = process.log();
    for secret in [&*password("relay"), "hunter2", "aHVudGVyMg", "QUMxOm"] {
        assert!(!log.contains(secret) && !metrics.contains(secret), "{secret}");
    }
    let parsed = lines(&process);
    assert_eq!(parsed.len(), log.lines().count(), "every line is JSON: {log}");
    assert!(parsed.iter().all(|line| line["level"].is_string() && line["timestamp"].is_string()));
    assert!(parsed.len() < 30, "no line per successful row: {log}");
    let warned: Vec<&Value> = parsed.iter().filter(|line| line["message"] == "row not published").collect();
    let [warned] = warned[..] else { panic!("one line for one failed row: {warned:?}") };
    assert_eq!(warned["level"], "WARN");
    assert_eq!(
        (&warned["message_id"], &warned["class"], &warned["code"]),
        (&"51".into(), &"poison".into(), &"template".into())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn every_replica_shows_lag_and_backlog_of_every_cursor() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("s", ""));
    let processes = [Process::spawn(&text, &["run"]), Process::spawn(&text, &["run"])];
    let mut urls = Vec::new();
    for process in &processes {
        urls.push(format!("{}/metrics", listener(process).await));
    }
    // A writer holds the horizon back: the row stays.
    let mut writer = database.connect("app").await;
    let open = writer.transaction().await.unwrap();
    open.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    let shown = |name: &str, text: &str| -> f64 {
        let start = format!("outbox_relay_{name}{{cursor=\"s\"}} ");
        text.lines().find_map(|line| line.strip_prefix(&start)).map_or(0.0, |value| value.parse().unwrap())
    };
    for url in &urls {
        eventually(PATIENCE * 2, || async {
            let text = get(url).await.1;
            shown("cursor_lag_seconds", &text) > 0.0
                && shown("cursor_backlog_rows", &text) == 1.0
                && shown("cursor_held", &text) == 1.0
                && shown("horizon_hold_seconds", &text) > 0.0
        })
        .await;
    }
    open.rollback().await.unwrap();
}

// Guarantee: observe.horizon-hold
#[tokio::test(flavor = "multi_thread")]
async fn horizon_hold_after_a_restart_is_never_longer_than_its_transaction_is_open() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("s", ""));
    owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!(code, Some(0), "{log}");
    let idle = "UPDATE outbox.cursor SET advanced_at = advanced_at - interval '2 hours' WHERE name = 's'";
    owner.batch_execute(idle).await.unwrap();
    let (mut writer, begun) = (database.connect("app").await, Instant::now());
    let open = writer.transaction().await.unwrap();
    open.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();

    // It was open before this replica's first scan, and the relay's role may not read since when.
    let process = Process::spawn(&text, &["run"]);
    let url = format!("{}/metrics", listener(&process).await);
    let shown = async |name: &str| -> Option<f64> {
        let start = format!("outbox_relay_{name} ");
        get(&url).await.1.lines().find_map(|line| line.strip_prefix(&start)).map(|value| value.parse().unwrap())
    };
    let holders = "horizon_holders{cursor=\"s\",reason=\"unknown_start\"}";
    eventually(PATIENCE, || async { shown(holders).await == Some(1.0) }).await;
    let mut longest: f64 = 0.0;
    for row_waits in [false, true] {
        if row_waits {
            owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
            eventually(PATIENCE, || async { shown("cursor_held{cursor=\"s\"}").await == Some(1.0) }).await;
        }
        let before = longest;
        // It grows by itself while the transaction stays open.
        eventually(PATIENCE, || async { shown("horizon_hold_seconds{cursor=\"s\"}").await > Some(before + 0.5) }).await;
        longest = shown("horizon_hold_seconds{cursor=\"s\"}").await.unwrap();
        let open_for = begun.elapsed().as_secs_f64();
        assert!(longest <= open_for, "shown as {longest} s, open for {open_for} s");
    }
    open.rollback().await.unwrap();
    eventually(PATIENCE, || async { shown("horizon_hold_seconds{cursor=\"s\"}").await.is_some_and(|hold| hold < 1.0) })
        .await;
}

// Guarantee: observe.postgres-up
#[tokio::test(flavor = "multi_thread")]
async fn refused_role_shows_postgres_down_until_accepted() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let role = unique("revoked").replace('-', "_");
    owner.batch_execute(&format!("{} IN ROLE relay", login(&role))).await.unwrap();
    let process = Process::spawn(&toml(&database, &role, None, &stdout_relay("s", "")), &["run"]);
    let listener = listener(&process).await;
    let shows = async |up: &str| {
        let line = format!("outbox_relay_postgres_up {up}");
        get(&format!("{listener}/metrics")).await.1.lines().any(|shown| shown == line)
    };
    eventually(PATIENCE * 2, || shows("1")).await;
    owner
        .batch_execute(&format!(
            "ALTER ROLE {role} NOLOGIN; SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{role}'"
        ))
        .await
        .unwrap();
    eventually(PATIENCE * 2, || shows("0")).await;
    assert!(!shows("1").await);
    owner.batch_execute(&format!("ALTER ROLE {role} LOGIN")).await.unwrap();
    eventually(PATIENCE * 3, || shows("1")).await;
    let again = line(&process, "connected to PostgreSQL again").await;
    assert!(again["level"] == "INFO" && again["away"].as_str().is_some_and(|away| away.ends_with('s')), "{again}");
    assert_eq!(process.log().matches("connected to PostgreSQL again").count(), 1);
}
