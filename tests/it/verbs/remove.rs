//! `cursor remove` and `status NAME…`: a relay is taken out.

use super::{ends, insert, operation};
use crate::support::outside::{json, line, printed, stdout_relay};
use crate::support::{CLOCK, PATIENCE, Process, bookings, database, eventually, toml};

// Guarantee: commands.remove
#[tokio::test(flavor = "multi_thread")]
async fn removed_cursor_no_longer_fails_max_lag() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let both = toml(&database, "relay", None, &(stdout_relay("kept", "") + &stdout_relay("gone", "")));
    let kept = toml(&database, "relay", None, &stdout_relay("kept", ""));
    insert(&owner, 2).await;
    ends(0, &both, &["run", "--once"]).await;
    owner.batch_execute("INSERT INTO outbox.control (cursor, paused) VALUES ('gone', true)").await.unwrap();
    let (_, log) = ends(3, &kept, &["status", "--max-lag", "1h"]).await;
    assert!(log.contains("the lag of gone is not known: no relay of this configuration has it"), "{log}");
    ends(0, &kept, &["status", "kept", "--max-lag", "1h"]).await;

    let (out, log) = ends(0, &kept, &["cursor", "remove", "gone", "--dry-run"]).await;
    assert!(out.starts_with("removes: cursor gone at (") && log == "dry run: nothing was done\n", "{out}{log}");
    let (_, log) = ends(2, &kept, &["cursor", "remove", "gone"]).await;
    assert!(log.contains("add --yes"), "{log}");
    let (out, _) = ends(0, &both, &["cursor", "remove", "gone", "--yes"]).await;
    assert!(out.contains("WARNING: relay gone is configured here"), "{out}");
    assert!(out.ends_with("gone: removed\n"), "{out}");
    for table in ["cursor WHERE name", "control WHERE cursor", "cursor_status WHERE cursor"] {
        let rows: i64 =
            owner.query_one(&format!("SELECT count(*) FROM outbox.{table} = 'gone'"), &[]).await.unwrap().get(0);
        assert_eq!(rows, 0, "{table}");
    }
    let detail = operation(&owner, "cursor remove").await.unwrap();
    assert_eq!((&detail["cursors"][0]["name"], &detail["cursors"][0]["id"]), (&"gone".into(), &"2".into()));
    ends(0, &kept, &["status", "--max-lag", "1h"]).await;
    let (_, log) = ends(1, &kept, &["cursor", "remove", "gone", "--yes"]).await;
    assert_eq!(log, "error: there is no cursor gone; `outbox-relay cursor list` shows them\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn removal_counts_the_rows_it_gives_up() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let both = toml(&database, "relay", None, &(stdout_relay("kept", "") + &stdout_relay("gone", "")));
    let kept = toml(&database, "relay", None, &stdout_relay("kept", ""));
    insert(&owner, 1).await;
    ends(0, &both, &["run", "--once"]).await;
    let (out, _) = ends(0, &kept, &["cursor", "remove", "gone", "--dry-run"]).await;
    assert!(out.ends_with("\nno row waits after it\n"), "{out}");

    insert(&owner, 2).await;
    for text in [&both, &kept] {
        let (out, _) = ends(0, text, &["cursor", "remove", "gone", "--dry-run"]).await;
        assert!(out.contains("\n2 rows after it are given up: gone never sends them\n"), "{out}");
    }
    owner.batch_execute("REVOKE SELECT ON bookings FROM relay").await.unwrap();
    let (out, _) = ends(0, &kept, &["cursor", "remove", "gone", "--dry-run"]).await;
    assert!(out.contains("\nrows that were not delivered may be given up: they cannot be counted: "), "{out}");
    owner
        .batch_execute("GRANT SELECT ON bookings TO relay; INSERT INTO bookings SELECT FROM generate_series(1, 10000)")
        .await
        .unwrap();
    let (out, _) = ends(0, &kept, &["cursor", "remove", "gone", "--yes"]).await;
    assert!(out.contains("\n10000 or more rows after it are given up: gone never sends them\n"), "{out}");
    let detail = operation(&owner, "cursor remove").await.unwrap();
    let given_up = serde_json::json!({ "rows": 10_000, "capped": true });
    assert_eq!(detail["cursors"][0]["given_up"], given_up, "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_unadvanced_cursor_are_counted() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let gone = toml(&database, "relay", None, &stdout_relay("gone", ""));
    let kept = toml(&database, "relay", None, &stdout_relay("kept", ""));
    insert(&owner, 2).await;
    ends(0, &gone, &["cursor", "create", "gone", "--beginning"]).await;
    let (out, _) = ends(0, &kept, &["cursor", "remove", "gone", "--dry-run"]).await;
    println!("{out}");
    assert!(out.contains("\n2 rows after it are given up: gone never sends them\n"), "{out}");
    owner.batch_execute("ALTER TABLE bookings RENAME TO archive").await.unwrap();
    let (out, _) = ends(0, &kept, &["cursor", "remove", "gone", "--dry-run"]).await;
    println!("{out}");
    let plain = "\nrows that were not delivered may be given up: they cannot be counted: ";
    assert!(out.contains(plain) && out.contains("public.bookings"), "{out}");
    owner.batch_execute("UPDATE outbox.cursor SET identity = NULL").await.unwrap();
    let (out, _) = ends(0, &kept, &["cursor", "remove", "gone", "--dry-run"]).await;
    println!("{out}");
    let unknown = "this configuration does not have the relay, and its cursor does not name its table\n";
    assert!(out.contains(plain) && out.ends_with(unknown), "{out}");
}

// Guarantee: commands.remove
#[tokio::test(flavor = "multi_thread")]
async fn cursor_of_a_running_replica_is_not_removed() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("busy", ""));
    insert(&owner, 1).await;
    let mut process = Process::spawn(&text, &["run", "--replica-id", "eu-1"]);
    eventually(PATIENCE * 2, || async { printed(&process, "busy") == ["1"] }).await;
    for verb in [&["cursor", "remove", "busy", "--yes"][..], &["cursor", "rename", "busy", "other", "--yes"]] {
        let (_, log) = ends(1, &text, verb).await;
        assert!(log.starts_with("error: replica eu-1 is running and "), "{log}");
        assert!(log.contains("busy: stop it, or remove the relay from its configuration and restart it"), "{log}");
    }
    process.signal(rustix::process::Signal::TERM);
    assert_eq!(process.wait().await, Some(0));
    ends(0, &text, &["cursor", "remove", "busy", "--yes"]).await;
}

// Guarantee: commands.remove
#[tokio::test(flavor = "multi_thread")]
async fn replica_without_the_relay_does_not_hinder() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("gone", ""));
    insert(&owner, 1).await;
    ends(0, &text, &["run", "--once"]).await;
    let kept = toml(&database, "relay", None, &stdout_relay("kept", ""));
    ends(0, &kept, &["cursor", "create", "kept", "--beginning"]).await; // it is no renamed one
    let process = Process::spawn(&kept, &["run", "--replica-id", "eu-1"]);
    line(&process, "relay ready").await;
    let reported = "SELECT count(*) FROM outbox.replica WHERE id = 'eu-1' AND relays -> 0 ->> 'name' = 'kept'";
    eventually(PATIENCE, async || owner.query_one(reported, &[]).await.unwrap().get::<_, i64>(0) == 1).await;
    // An older row of its id is of a process that has ended.
    owner
        .batch_execute(
            "INSERT INTO outbox.replica (id, version, started_at, relays) VALUES \
             ('eu-1', '0', now() - interval '1 hour', '[{\"name\": \"gone\"}]')",
        )
        .await
        .unwrap();
    let (_, log) = ends(1, &text, &["cursor", "remove", "kept", "--yes"]).await;
    assert!(log.starts_with("error: replica eu-1 is running and has relay kept: stop it"), "{log}");
    ends(0, &text, &["cursor", "remove", "gone", "--yes"]).await;
}

// Guarantee: commands.remove
#[tokio::test(flavor = "multi_thread")]
async fn unfinished_work_refuses_removal_and_is_named() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("s", ""));
    insert(&owner, 1).await;
    ends(0, &text, &["run", "--once"]).await;
    owner
        .batch_execute(
            "INSERT INTO outbox.dead_letter (cursor, source, created_at, message_id, sink, target, fields, field_values, error, \
             dead_lettered_by, state) SELECT 's', 't', now(), n::text, 'k', 't', '{}', '{}', '{}', 'r', \
             CASE n WHEN 1 THEN 'dead' ELSE 'discarded' END FROM generate_series(1, 3) AS n; \
             INSERT INTO outbox.claim (relay, key, due_at, state, token, claimed_by) VALUES ('s', '{1}', now(), 'unknown', 't', 'r'); \
             INSERT INTO outbox.schedule (name, relay, rule) VALUES ('daily', 's', 'FREQ=DAILY'); \
             INSERT INTO outbox.sent (relay, key, due_at, sent_by) VALUES ('s', '{7}', now(), 'r')",
        )
        .await
        .unwrap();
    let (out, log) = ends(1, &text, &["cursor", "remove", "s", "--yes"]).await;
    assert_eq!(out, "");
    assert_eq!(
        log,
        "error: relay s has what is not finished:\n  \
         1 unknown outcome -> ask the receiver, then `outbox-relay request settle 1 --relay s --arrived`; or \
         `outbox-relay request settle 1 --relay s --lost`\n  \
         1 dead letter -> `outbox-relay dead-letter redrive --cursor s`, then `outbox-relay run --once --relay s`; or give them up: \
         `outbox-relay dead-letter discard --cursor s`\n  \
         1 schedule -> `DELETE FROM outbox.schedule WHERE relay = 's'`; or hand them over: \
         `UPDATE outbox.schedule SET relay = 'NEW' WHERE relay = 's'`\n"
    );
    // The function is what refuses, whoever calls it.
    let relay = database.connect("relay").await;
    let refused = relay.batch_execute("SELECT outbox.remove_cursors('s', 'x', NULL)").await.unwrap_err();
    let refused = refused.as_db_error().unwrap().message().to_owned();
    assert_eq!(refused, "relay s has 1 unknown outcomes, 1 dead letters, 1 schedules");
    owner
        .batch_execute(
            "DELETE FROM outbox.claim; DELETE FROM outbox.schedule; UPDATE outbox.dead_letter SET state = 'discarded'",
        )
        .await
        .unwrap();
    let (out, _) = ends(0, &text, &["cursor", "remove", "s", "--yes"]).await;
    assert!(out.contains("kept as history: 3 dead letters\nkept as history: 1 mark of a row sent\n"), "{out}");
    let kept: i64 = owner.query_one("SELECT count(*) FROM outbox.sent", &[]).await.unwrap().get(0);
    assert_eq!(kept, 1, "or the row would be sent again when the relay comes back");
}

// Guarantee: commands.remove
#[tokio::test(flavor = "multi_thread")]
async fn shards_are_removed_together() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("s", ""));
    owner
        .batch_execute(
            "INSERT INTO outbox.cursor (name, relay) SELECT 'many#' || n, 'many' FROM generate_series(0, 2) AS n",
        )
        .await
        .unwrap();
    let (_, log) = ends(1, &text, &["cursor", "remove", "many#1", "--yes"]).await;
    assert_eq!(log, "error: many#1 is one of the cursors of relay many: name many, for all of them\n");
    let (out, _) = ends(0, &text, &["cursor", "remove", "many", "--yes"]).await;
    assert!(out.contains("removes: cursor many#2 before every row\n"), "{out}");
    let left: i64 = owner.query_one("SELECT count(*) FROM outbox.cursor", &[]).await.unwrap().get(0);
    assert_eq!(left, 0);
}

// Guarantee: commands.status-names
#[tokio::test(flavor = "multi_thread")]
async fn status_of_names_shows_only_these() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &(stdout_relay("a", "") + &stdout_relay("b", "")));
    insert(&owner, 1).await;
    ends(0, &text, &["run", "--once"]).await;
    owner
        .batch_execute(
            "INSERT INTO outbox.cursor (name, relay) SELECT 'many#' || n, 'many' FROM generate_series(0, 1) AS n",
        )
        .await
        .unwrap();
    let names = async |args: &[&str]| {
        let (out, _) = ends(0, &text, &[&["status", "-o", "json"], args].concat()).await;
        let cursors = json(&out)["cursors"].as_array().unwrap().clone();
        cursors.iter().map(|cursor| cursor["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&["b"]).await, ["b"]);
    assert_eq!(names(&["many", "a"]).await, ["a", "many#0", "many#1"]);
    assert_eq!(names(&["many#1"]).await, ["many#1"]);
    for watch in [&[][..], &["--watch"]] {
        let (out, log) = ends(2, &text, &[&["status", "a", "nosuch", "--max-lag", "1h"], watch].concat()).await;
        assert_eq!(
            (out.as_str(), log.as_str()),
            ("", "error: there is no cursor nosuch; the cursors are: a, b, many#0, many#1\n")
        );
    }
}
