//! `cursor rename`: a relay has another name, and continues where it ended.

use super::{ends, insert, operation};
use crate::support::outside::{json, stdout_relay};
use crate::support::{CLOCK, bookings, database, toml};

// Guarantee: commands.rename
#[tokio::test(flavor = "multi_thread")]
async fn renamed_cursor_continues_where_it_ended() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let old = toml(&database, "relay", None, &stdout_relay("old", ""));
    let new = toml(&database, "relay", None, &stdout_relay("new", ""));
    insert(&owner, 2).await;
    ends(0, &old, &["run", "--once"]).await;
    insert(&owner, 1).await;
    let (out, _) = ends(0, &old, &["cursor", "rename", "old", "new", "--dry-run"]).await;
    assert!(out.starts_with("cursor old at (") && out.ends_with(") -> new\n"), "{out}");
    let (out, _) = ends(0, &old, &["cursor", "rename", "old", "new", "--yes"]).await;
    assert!(out.ends_with("old: renamed to new; start replicas that have relay new\n"), "{out}");
    let detail = operation(&owner, "cursor rename").await.unwrap();
    assert_eq!((&detail["from"], &detail["cursors"][0]["id"]), (&"old".into(), &"2".into()));
    let (out, _) = ends(0, &new, &["run", "--once"]).await;
    let ids: Vec<_> = out.lines().map(|line| json(line)["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids, ["3"], "neither again nor never: {out}");
    let (_, log) = ends(1, &new, &["cursor", "rename", "old", "other", "--yes"]).await;
    assert_eq!(log, "error: there is no cursor old; `outbox-relay cursor list` shows them\n");
}

// Guarantee: commands.rename
#[tokio::test(flavor = "multi_thread")]
async fn everything_under_a_name_moves_with_it() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("other", ""));
    owner
        .batch_execute(
            "INSERT INTO outbox.cursor (name, relay, position_created_at, position_id, token) \
             SELECT 'old#' || n, 'old', '2026-11-21Z'::timestamptz + n * interval '1 second', n::text, \
             CASE n WHEN 1 THEN '{\"token\": \"t\", \"by\": \"r\", \"rows\": [{\"id\": \"9\"}]}'::jsonb END FROM generate_series(0, 2) AS n; \
             INSERT INTO outbox.control (cursor, paused, paused_by) VALUES ('old#2', true, 'ada'); \
             INSERT INTO outbox.cursor_status (cursor, halted, state) VALUES ('old#0', true, 'halted'), ('new#0', true, 'halted'); \
             INSERT INTO outbox.dead_letter (cursor, source, created_at, message_id, sink, target, fields, field_values, error, \
             dead_lettered_by) VALUES ('old#1', 't', now(), '5', 'k', 't', '{}', '{}', '{}', 'r'); \
             INSERT INTO outbox.claim (relay, key, due_at, state, token, claimed_by) VALUES ('old#1', '{1}', now(), 'unknown', 't', 'r'); \
             INSERT INTO outbox.sent (relay, key, due_at, sent_by) VALUES ('old', '{7}', '2026-11-21Z', 'r'), \
             ('old', '{8}', '2026-11-21Z', 'r'), ('new', '{7}', '2026-11-20Z', 'r'), ('new', '{8}', '2026-11-22Z', 'r'); \
             INSERT INTO outbox.template (name, relay) VALUES ('hello', 'old'); \
             SELECT outbox.enqueue('ada', 'hello'); \
             INSERT INTO outbox.schedule (name, relay, rule, missed) VALUES ('daily', 'old', 'FREQ=DAILY', 'all'); \
             UPDATE outbox.schedule SET next_at = now() - interval '3 days', last_at = now() - interval '4 days', \
             changed_at = now() - interval '9 days'",
        )
        .await
        .unwrap();
    let schedule = "SELECT (next_at, last_at, changed_at)::text FROM outbox.schedule";
    let before: String = owner.query_one(schedule, &[]).await.unwrap().get(0);
    let (out, _) = ends(0, &text, &["cursor", "rename", "old", "new", "--yes"]).await;
    for said in [
        "cursor old#2 at (2026-11-21T00:00:02.000000Z, 2) -> new#2\n",
        "with it: 1 row in flight of old#1\n",
        "with it: 1 schedule\n",
    ] {
        assert!(out.contains(said), "{said} in {out}");
    }
    let text = async |sql: &str| -> String { owner.query_one(sql, &[]).await.unwrap().get(0) };
    let names = "string_agg(format('%s %s %s', name, relay, position_id), ', ' ORDER BY name)";
    let moved = text(&format!("SELECT {names} FROM outbox.cursor")).await;
    assert_eq!(moved, "new#0 new 0, new#1 new 1, new#2 new 2");
    for (sql, moved) in [
        ("SELECT cursor || ' ' || paused_by FROM outbox.control", "new#2 ada"),
        ("SELECT string_agg(cursor, ', ') FROM outbox.cursor_status", "new#0"),
        ("SELECT cursor FROM outbox.dead_letter", "new#1"),
        ("SELECT relay FROM outbox.claim", "new#1"),
        (
            "SELECT string_agg(relay || key::text || due_at::date::text, ', ' ORDER BY key) FROM outbox.sent",
            "new{7}2026-11-21, new{8}2026-11-22",
        ),
        ("SELECT relay FROM outbox.template", "new"),
        ("SELECT relay FROM outbox.request", "new"),
        ("SELECT relay FROM outbox.schedule", "new"),
        ("SELECT count(*)::text FROM outbox.action", "0"),
    ] {
        assert_eq!(text(sql).await, moved, "{sql}");
    }
    assert_eq!(text(schedule).await, before, "what was missed is still to come");
}

// Guarantee: commands.rename
#[tokio::test(flavor = "multi_thread")]
async fn rename_to_a_name_with_a_cursor_is_refused() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let both = toml(&database, "relay", None, &(stdout_relay("a", "") + &stdout_relay("b", "")));
    insert(&owner, 1).await;
    ends(0, &both, &["run", "--once"]).await;
    let (_, log) = ends(1, &both, &["cursor", "rename", "a", "b", "--yes"]).await;
    assert_eq!(
        log,
        "error: there is a cursor b already. To give it up: stop the replicas that have relay b, run `outbox-relay cursor remove b`, then \
                 `outbox-relay cursor rename a b`, and start them again. To keep it: `outbox-relay cursor remove a --dry-run` prints what \
                 waits for a\n"
    );
    let relay = database.connect("relay").await;
    let refused = relay.batch_execute("SELECT outbox.rename_cursors('a', 'b', 'x')").await.unwrap_err();
    assert_eq!(refused.as_db_error().unwrap().message(), "there is a relay b already");
}
