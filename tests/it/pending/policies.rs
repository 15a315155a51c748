//! Poison rows, operators' verbs, and what `check` and `status` say of due work.

use std::time::Duration;

use super::{PATIENCE, count, database, eventually, reminders, tables};
use crate::support::outside::{finding, halted, json, line};
use crate::support::receiver::Receiver;
use crate::support::{Process, outbox_relay, toml};

// Guarantee: pending.poison
#[tokio::test(flavor = "multi_thread")]
async fn a_poison_row_halts_and_is_sent_after_the_operator_resumes() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    owner
        .batch_execute("INSERT INTO todos SELECT 'w', n::text, 't', now() FROM generate_series(1, 3) AS n")
        .await
        .unwrap();
    receiver.answer(|request| (if request.key.ends_with("/2") { 422 } else { 200 }, Duration::ZERO));
    let text = toml(&database, "relay", None, &reminders(&receiver, ""));
    let _process = Process::spawn(&text, &["run"]);
    let is_halted = "SELECT count(*) FROM outbox.cursor_status WHERE halted AND message_id = 'w/2'";
    eventually(PATIENCE, async || count(&owner, is_halted).await == 1).await;
    let (id, error) = halted(&owner, "reminders").await;
    assert_eq!((id.as_deref(), &error["class"], &error["code"]), (Some("w/2"), &"poison".into(), &"http_422".into()));
    owner.batch_execute("INSERT INTO todos VALUES ('w', 'new', 't', now())").await.unwrap();
    let (code, _, log) = outbox_relay(&text, &["run", "--once", "--timeout", "20s"]).await;
    assert_eq!(code, Some(1), "{log}");
    assert_eq!(count(&owner, "SELECT count(*) FROM todos WHERE \"delayNotificationSent\"").await, 2, "it stands still");
    receiver.answer(|_| (200, Duration::ZERO));
    let (code, _, log) = outbox_relay(&text, &["cursor", "resume", "reminders"]).await;
    assert_eq!(code, Some(0), "{log}");
    eventually(PATIENCE, async || {
        count(&owner, "SELECT count(*) FROM todos WHERE \"delayNotificationSent\"").await == 4
    })
    .await;
}

// Guarantee: failures.halt-side-by-side
#[tokio::test(flavor = "multi_thread")]
async fn replicas_with_different_settings_send_a_refused_row_once_each() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    receiver.answer(|_| (422, Duration::ZERO));
    let text = |timeout: &str| {
        toml(&database, "relay", None, &format!("{}timeout = \"{timeout}\"\n", reminders(&receiver, "")))
    };
    let replicas = ["1s", "2s"].map(|timeout| Process::spawn(&text(timeout), &["run", "--replica-id", timeout]));
    for replica in &replicas {
        line(replica, "relay ready").await;
    }
    owner.batch_execute("INSERT INTO todos VALUES ('w', '1', 't', now())").await.unwrap();
    let both = "SELECT count(*) FROM outbox.cursor_status WHERE halted AND fingerprint LIKE '% %'";
    eventually(PATIENCE * 3, async || count(&owner, both).await == 1).await;
    // Longer than the pause between two checks of a relay that is halted.
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(receiver.requests().len(), 2);
}

// Guarantee: pending.poison
#[tokio::test(flavor = "multi_thread")]
async fn a_poison_row_is_put_aside_and_redriven_with_its_id_and_its_mark() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    owner
        .batch_execute("INSERT INTO todos SELECT 'w', n::text, 't', now() FROM generate_series(1, 5) AS n")
        .await
        .unwrap();
    receiver.answer(|request| (if request.key.ends_with("/2") { 422 } else { 200 }, Duration::ZERO));
    let text = toml(&database, "relay", None, &reminders(&receiver, "on_poison = \"dead_letter\""));
    let _process = Process::spawn(&text, &["run"]);
    let marked = "SELECT count(*) FROM todos WHERE \"delayNotificationSent\"";
    eventually(PATIENCE, async || count(&owner, marked).await == 4).await;
    eventually(PATIENCE, async || {
        count(&owner, "SELECT count(*) FROM outbox.dead_letter WHERE state = 'dead'").await == 1
    })
    .await;
    let (_, out, _) = outbox_relay(&text, &["dead-letter", "list", "-o", "json"]).await;
    let letter = json(&out)["dead_letters"][0].clone();
    assert_eq!(letter["key"], serde_json::json!(["w/2"]), "{letter}");
    receiver.answer(|_| (200, Duration::ZERO));
    let id = letter["id"].to_string();
    let (code, _, log) = outbox_relay(&text, &["dead-letter", "redrive", &id, "--yes"]).await;
    assert_eq!(code, Some(0), "{log}");
    eventually(PATIENCE, async || count(&owner, marked).await == 5).await;
    let last = receiver.requests().pop().unwrap();
    assert_eq!((last.key.as_str(), last.replayed), ("reminders/w/2", true));
    let redriven = "SELECT count(*) FROM outbox.dead_letter WHERE state = 'redriven'";
    eventually(PATIENCE, async || count(&owner, redriven).await == 1).await;
    assert_eq!(count(&owner, "SELECT count(*) FROM outbox.claim").await, 0);
}

// Guarantee: pending.once-without-faults
#[tokio::test(flavor = "multi_thread")]
async fn two_runs_at_the_same_moment_send_each_row_once_and_a_paused_relay_sends_none() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    owner
        .batch_execute("INSERT INTO todos SELECT 'w', n::text, 't', now() FROM generate_series(1, 500) AS n")
        .await
        .unwrap();
    let text = toml(&database, "relay", None, &reminders(&receiver, ""));
    let once = async || outbox_relay(&text, &["run", "--once"]).await;
    let ((first, _, one), (second, _, two)) = tokio::join!(once(), once());
    assert_eq!((first, second), (Some(0), Some(0)), "{one}{two}");
    assert_eq!(receiver.requests().len(), 500);
    assert_eq!(count(&owner, "SELECT count(*) FROM todos WHERE \"delayNotificationSent\"").await, 500);

    let (code, _, log) = outbox_relay(&text, &["cursor", "pause", "reminders"]).await;
    assert_eq!(code, Some(0), "{log}");
    owner.batch_execute("INSERT INTO todos VALUES ('w', 'new', 't', now() - interval '90 s')").await.unwrap();
    let (_, out, _) = outbox_relay(&text, &["status", "-o", "json"]).await;
    let cursor = json(&out)["cursors"][0].clone();
    assert_eq!((&cursor["state"], &cursor["backlog_rows"]), (&"paused".into(), &1.into()), "{cursor}");
    assert!(cursor["lag_seconds"].as_f64().unwrap() >= 90.0, "{cursor}");
    let (code, _, _) = outbox_relay(&text, &["status", "--max-lag", "60s"]).await;
    assert_eq!(code, Some(3));
    let (_, out, _) = outbox_relay(&text, &["cursor", "seek", "reminders", "--now", "--yes"]).await;
    assert_eq!(receiver.requests().len(), 500, "{out}");
}

#[tokio::test(flavor = "multi_thread")]
async fn check_names_what_is_wrong_with_a_table_of_due_work_and_the_sql_that_fixes_it() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    let relay = reminders(&receiver, "");
    for (change, back, code, level, fix) in [
        (
            "DROP INDEX \"todos_dueDate_workspaceId_id_idx\"",
            "CREATE INDEX ON todos (\"dueDate\", \"workspaceId\", id) WHERE NOT \"delayNotificationSent\"",
            "index_missing",
            "warn",
            "CREATE INDEX CONCURRENTLY ON \"public\".\"todos\" (\"dueDate\", \"workspaceId\", \"id\") WHERE NOT \"delayNotificationSent\";",
        ),
        (
            "DROP INDEX \"todos_dueDate_workspaceId_id_idx\"; CREATE INDEX wrong ON todos (\"dueDate\") \
             WHERE \"delayNotificationSent\" IS NOT TRUE",
            "DROP INDEX wrong; CREATE INDEX ON todos (\"dueDate\", \"workspaceId\", id) WHERE NOT \"delayNotificationSent\"",
            "index_missing",
            "warn",
            "CREATE INDEX CONCURRENTLY ON \"public\".\"todos\" (\"dueDate\", \"workspaceId\", \"id\") WHERE NOT \"delayNotificationSent\";",
        ),
        (
            "REVOKE UPDATE (\"delayNotificationSent\") ON todos FROM relay",
            "GRANT UPDATE (\"delayNotificationSent\") ON todos TO relay",
            "privilege_missing",
            "error",
            "GRANT UPDATE (\"delayNotificationSent\") ON \"public\".\"todos\" TO \"relay\";",
        ),
        (
            "ALTER TABLE todos DROP CONSTRAINT todos_pkey",
            "ALTER TABLE todos ADD PRIMARY KEY (\"workspaceId\", id)",
            "key_not_unique",
            "error",
            "CREATE UNIQUE INDEX CONCURRENTLY ON \"public\".\"todos\" (\"workspaceId\", \"id\");",
        ),
        (
            "ALTER TABLE todos ENABLE ROW LEVEL SECURITY",
            "ALTER TABLE todos DISABLE ROW LEVEL SECURITY",
            "row_security",
            "error",
            "ALTER ROLE \"relay\" BYPASSRLS;",
        ),
    ] {
        owner.batch_execute(change).await.unwrap();
        let (exit, out, _) = outbox_relay(&toml(&database, "relay", None, &relay), &["check", "-o", "json"]).await;
        owner.batch_execute(back).await.unwrap();
        let document = json(&out);
        let found = finding(&document, code).unwrap_or_else(|| panic!("{code}: {out}"));
        assert_eq!((&found["level"], &found["fix_sql"]), (&level.into(), &fix.into()), "{found}");
        assert_eq!(exit, Some(if level == "error" { 3 } else { 0 }), "{out}");
    }
    for (setting, with, code) in [
        ("due = \"dueDate\"", "due = \"title\"", "column_type"),
        ("due = \"dueDate\"", "due = \"when\"", "column_missing"),
        ("due = \"dueDate\"", "due = \"dueDate\"\ntime_zone = \"UTC\"", "column_type"),
        ("sent = \"delayNotificationSent\"", "sent = \"title\"", "column_type"),
        ("public.todos", "public.nothing", "table_missing"),
        ("due = \"dueDate\"", "due = \"dueDate\"\nwhere = { \"dueDate\" = \"not a date\" }", "column_unreadable"),
        ("delayed-{{ id }}", "delayed-{{ nothing }}", "column_unreadable"),
    ] {
        let text = toml(&database, "relay", None, &relay.replacen(setting, with, 1));
        let (exit, out, log) = outbox_relay(&text, &["check", "-o", "json"]).await;
        let document = json(&out);
        let found = finding(&document, code).unwrap_or_else(|| panic!("{code}: {out}{log}"));
        assert_eq!((exit, &found["level"]), (Some(3), &"error".into()), "{found}");
        assert!(found["fix_setting"].is_string() || found["fix_sql"].is_string(), "{found}");
    }
}

// Guarantee: pending.plans
#[tokio::test(flavor = "multi_thread")]
async fn claims_of_a_million_rows_stay_index_scans() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    owner
        .batch_execute(
            "INSERT INTO todos SELECT 'w' || n % 100, n::text, 't', now() + (n - 10000) * interval '1 minute', n % 3 = 0 AND n > 10000 \
             FROM generate_series(1, 1000000) AS n; ANALYZE todos",
        )
        .await
        .unwrap();
    let relay = reminders(&receiver, "");
    let relay = format!("{}limit = 1000\n[relay.sink.stdout]\n", relay.split("[relay.sink.http]").next().unwrap());
    let text = toml(&database, "relay", None, &relay);
    let scans = "SELECT COALESCE(seq_scan, 0) FROM pg_stat_user_tables WHERE relname = 'todos'";
    let before = count(&owner, scans).await;
    let begun = std::time::Instant::now();
    let (code, out, log) = outbox_relay(&text, &["run", "--once"]).await;
    println!("{} rows in {:?}", out.lines().count(), begun.elapsed());
    assert_eq!(code, Some(0), "{log}");
    assert!((10_000..10_100).contains(&out.lines().count()), "{}", out.lines().count());
    // A session's statistics arrive when it ends.
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'relay' AND datname = current_database()";
    eventually(PATIENCE, async || count(&owner, sessions).await == 0).await;
    assert_eq!(count(&owner, scans).await, before, "no look, no claim and no mark reads the whole table");
    let used = "SELECT COALESCE(sum(idx_scan), 0)::bigint FROM pg_stat_user_indexes WHERE relname = 'todos'";
    assert!(count(&owner, used).await > 10, "they use the indexes");
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_see_what_is_due_what_waits_after_a_failure_and_why() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    owner
        .batch_execute("INSERT INTO todos SELECT 'w', n::text, 't', now() FROM generate_series(1, 2) AS n")
        .await
        .unwrap();
    receiver.answer(|_| (503, Duration::ZERO));
    let text = toml(&database, "relay", None, &reminders(&receiver, ""));
    let _process = Process::spawn(&text, &["run"]);
    let waiting = "SELECT count(*) FROM outbox.claim WHERE state = 'waiting' AND attempts >= 3";
    eventually(PATIENCE * 2, async || count(&owner, waiting).await == 2).await;
    let (_, out, _) = outbox_relay(&text, &["request", "list", "-o", "json"]).await;
    let requests = json(&out)["requests"].clone();
    assert_eq!(requests.as_array().unwrap().len(), 2, "{requests}");
    assert_eq!((&requests[0]["key"], &requests[0]["status"]), (&serde_json::json!(["w", "1"]), &"waiting".into()));
    assert_eq!(requests[0]["error"]["code"], "http_503", "{requests}");
    let (_, out, _) = outbox_relay(&text, &["cursor", "why", "reminders"]).await;
    assert!(out.contains("all that is due has failed") && out.contains("http_503"), "{out}");
    for verb in [&["status"][..], &["cursor", "list"], &["cursor", "show", "reminders"], &["request", "list"]] {
        let (code, out, log) = outbox_relay(&text, verb).await;
        println!("{verb:?}\n{out}{log}");
        assert_eq!(code, Some(0), "{log}");
        assert!(out.contains("reminders") && !out.contains("before every row"), "{out}");
    }
}

/// What answers 5xx may have accepted: each try of each row could be received twice.
#[tokio::test(flavor = "multi_thread")]
async fn one_row_at_a_time_is_tried_while_the_receiver_answers_500() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    owner
        .batch_execute("INSERT INTO todos SELECT 'w', n::text, 't', now() FROM generate_series(1, 20) AS n")
        .await
        .unwrap();
    receiver.answer(|_| (500, Duration::ZERO));
    let _process = Process::spawn(&toml(&database, "relay", None, &reminders(&receiver, "")), &["run"]);
    eventually(PATIENCE, async || receiver.requests().len() >= 3).await;
    let before = receiver.requests().len();
    // What must not happen has no state to wait for: each row would be tried again within this time.
    tokio::time::sleep(Duration::from_secs(4)).await;
    let since = receiver.requests().len() - before;
    assert!(since < 20, "{since} more: all rows are tried");
    receiver.answer(|_| (200, Duration::ZERO));
    let marked = "SELECT count(*) FROM todos WHERE \"delayNotificationSent\"";
    eventually(PATIENCE * 3, async || count(&owner, marked).await == 20).await;
}

/// A job would begin with the same rows each time, and never get further.
#[tokio::test(flavor = "multi_thread")]
async fn run_once_tries_each_row_although_the_first_ones_answer_500() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    let rows = "INSERT INTO todos SELECT 'w', n::text, 't', now() - (20 - n) * interval '1 s' FROM generate_series(1, 14) AS n";
    owner.batch_execute(rows).await.unwrap();
    receiver.answer(|request| {
        let number: u32 = request.key.rsplit('/').next().and_then(|id| id.parse().ok()).unwrap_or(14);
        (if number <= 12 { 500 } else { 200 }, Duration::ZERO)
    });
    let text = toml(&database, "relay", None, &reminders(&receiver, ""));
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    let marked = count(&owner, "SELECT count(*) FROM todos WHERE \"delayNotificationSent\"").await;
    assert_eq!((code, marked, receiver.requests().len()), (Some(1), 2, 14), "{log}");
}
