//! How commands print instants.

use super::ends;
use crate::support::gateway::{Gateway, Mood, sms_relay};
use crate::support::{CLOCK, bookings, database, outbox_relay, toml};

/// A row of each kind that a command prints, with an error as a replica records it.
const ROWS: &str = "\
    UPDATE outbox.cursor SET seek_applied = 0; \
    INSERT INTO outbox.control (cursor, seek_seq, seek_to) VALUES ('s', 1, jsonb_build_object('created_at', now(), 'id', '1')); \
    INSERT INTO outbox.dead_letter (cursor, source, created_at, message_id, sink, target, fields, field_values, error, dead_lettered_by) \
    VALUES ('s', 'public.bookings', now(), '1', 'sms', 't', '{}', '{}', jsonb_build_object('at', now(), 'code', 'c'), 'r1'); \
    INSERT INTO outbox.claim (relay, key, due_at, state, token, claimed_by, not_before, error) \
    VALUES ('due', '{1}', now(), 'waiting', 't', 'r1', now(), jsonb_build_object('at', now(), 'code', 'c')); \
    INSERT INTO outbox.request (request_id, holds_key, user_id, template, parameters, relay, status, not_before, error) \
    VALUES ('00000000-0000-7000-8000-000000000001', false, 'u', 't', '{}', 'mails', 'failed', now(), \
    jsonb_build_object('at', now(), 'code', 'c')); \
    INSERT INTO outbox.schedule (name, relay, rule, starts_at, ends_at) \
    VALUES ('report', 'jobs', 'FREQ=DAILY', now(), now() + interval '9 days'); \
    INSERT INTO outbox.action (schedule_id, schedule, tenant, relay, planned_at, due_at, try_at, started_at, finished_at, status, \
    payload, on_interrupted, timeout, error) SELECT schedule_id, name, '', relay, now(), now(), now(), now(), now(), 'failed', '{}', \
    'retry', '1 minute', jsonb_build_object('at', now(), 'code', 'c') FROM outbox.schedule";

// Guarantee: observe.instants
#[tokio::test(flavor = "multi_thread")]
async fn instants_are_printed_in_utc_with_z_by_every_command() {
    let (database, gateway) = (database().await, Gateway::start().await);
    let owner = bookings(&database, CLOCK).await;
    owner
        .batch_execute("ALTER TABLE bookings ADD phone text DEFAULT '+1'; INSERT INTO bookings DEFAULT VALUES")
        .await
        .unwrap();
    gateway.set(Mood::Refuse(400, r#"{"code":21211}"#));
    let text = toml(&database, "relay", None, &sms_relay("s", &gateway, ""));
    assert_eq!(outbox_relay(&text, &["run", "--once"]).await.0, Some(1), "it halts");
    owner.batch_execute(ROWS).await.unwrap();
    let id: i64 = owner.query_one("SELECT id FROM outbox.dead_letter", &[]).await.unwrap().get(0);
    let (id, json) = (id.to_string(), ["-o", "json"]);
    let commands: [(i32, &[&str]); 13] = [
        (0, &["status"]),
        (0, &["cursor", "list"]),
        (0, &["cursor", "show", "s"]),
        (3, &["cursor", "why", "s"]),
        (0, &["replica", "list", "--all"]),
        (0, &["dead-letter", "list"]),
        (0, &["dead-letter", "show", &id]),
        (0, &["request", "list"]),
        (0, &["request", "show", "00000000-0000-7000-8000-000000000001"]),
        (0, &["schedule", "list"]),
        (0, &["schedule", "show", "report"]),
        // In another zone than UTC: the clocks there are printed with their distance from it.
        (0, &["schedule", "preview", "FREQ=DAILY", "--zone", "Europe/Berlin"]),
        (0, &["action", "list"]),
    ];
    let mut wrong = Vec::new();
    for (code, command) in commands {
        let text_only = ends(code, &text, command).await;
        let mut printed = vec![text_only.0, text_only.1];
        if !command.starts_with(&["request", "show"]) {
            printed.push(ends(code, &text, &[command, &json].concat()).await.0);
        }
        for printed in printed {
            // PostgreSQL's own form ends like this, too: 2026-01-02 03:04:05.000006+00.
            let lines = printed.match_indices("+00").map(|(at, _)| printed[..at + 3].to_owned());
            wrong.extend(lines.map(|line| format!("{command:?}: …{}", &line[line.len().saturating_sub(60)..])));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
