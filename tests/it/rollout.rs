//! `check` before a rollout: what the configuration changes about the cursors that are there.

use serde_json::Value;

use crate::support::gateway::{Gateway, Mood, sms_relay};
use crate::support::outside::{finding, halted, json, stdout_relay};
use crate::support::{CLOCK, Process, bookings, broker, database, kafka_relay, outbox_relay, toml, unique};

/// The exit code of `check` and its document.
async fn check(text: &str) -> (Option<i32>, Value) {
    let (code, out, log) = outbox_relay(text, &["check", "-o", "json"]).await;
    assert!(!out.is_empty(), "{log}");
    (code, json(&out))
}

async fn ends_well(text: &str, args: &[&str]) {
    let (code, out, log) = outbox_relay(text, args).await;
    assert_eq!(code, Some(0), "{args:?}: {out}{log}");
}

#[track_caller]
fn found<'a>(document: &'a Value, code: &str, level: &str) -> (&'a str, &'a str) {
    let found = finding(document, code).unwrap_or_else(|| panic!("{code} in {document}"));
    assert_eq!(found["level"], level, "{found}");
    (found["message"].as_str().unwrap(), found["fix_setting"].as_str().unwrap_or_default())
}

// Guarantee: commands.check-rollout
#[tokio::test(flavor = "multi_thread")]
async fn changed_topic_is_named_in_words_until_adopted() {
    let (database, broker) = (database().await, broker().await);
    let owner = bookings(&database, CLOCK).await;
    let (old, new) = (unique("old"), unique("new"));
    for topic in [&old, &new] {
        broker.create_topic(topic, 1, &[]).await.unwrap();
    }
    let servers = broker.bootstrap_servers();
    let of_topic = |topic: &str| toml(&database, "relay", Some(&servers), &kafka_relay("events", topic, ""));
    owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    ends_well(&of_topic(&old), &["run", "--once"]).await;
    let (code, document) = check(&of_topic(&old)).await;
    assert_eq!(code, Some(0), "{document}");
    for code in ["identity_changed", "cursor_new", "cursor_renamed", "cursor_halted"] {
        assert!(finding(&document, code).is_none(), "{document}");
    }
    let (code, document) = check(&of_topic(&new)).await;
    assert_eq!(code, Some(3));
    let (message, fix) = found(&document, "identity_changed", "error");
    let said = format!("this configuration changes what cursor events belongs to: topic {old} becomes {new}");
    assert_eq!(message, said);
    assert!(fix.contains("`outbox-relay cursor adopt events`"), "{fix}");
    ends_well(&of_topic(&new), &["cursor", "adopt", "events", "--yes", "--no-wait"]).await;
    let (_, out, _) = outbox_relay(&of_topic(&new), &["cursor", "why", "events"]).await;
    let waits = format!("of an operator (adopt public.bookings to kafka {new}) waits for a turn");
    assert!(out.contains(&waits), "{out}");
    assert_eq!(check(&of_topic(&new)).await.0, Some(0), "the change is accepted");
}

#[tokio::test(flavor = "multi_thread")]
async fn misspelt_table_is_no_table_to_adopt() {
    let database = database().await;
    bookings(&database, CLOCK).await;
    let right = toml(&database, "relay", None, &stdout_relay("events", ""));
    ends_well(&right, &["run", "--once"]).await;
    let (code, document) = check(&right.replace("public.bookings", "public.bokings")).await;
    assert_eq!(code, Some(3));
    assert!(finding(&document, "table_missing").is_some(), "{document}");
    assert!(finding(&document, "identity_changed").is_none(), "{document}");
}

// Guarantee: commands.check-rollout
#[tokio::test(flavor = "multi_thread")]
async fn misspelt_topic_is_no_topic_to_adopt() {
    let (database, broker) = (database().await, broker().await);
    bookings(&database, CLOCK).await;
    let topic = unique("spelt");
    broker.create_topic(&topic, 1, &[]).await.unwrap();
    let servers = broker.bootstrap_servers();
    let of_topic = |topic: &str| toml(&database, "relay", Some(&servers), &kafka_relay("events", topic, ""));
    ends_well(&of_topic(&topic), &["run", "--once"]).await;
    let (code, document) = check(&of_topic(&format!("{topic}x"))).await;
    assert_eq!(code, Some(3));
    assert!(finding(&document, "topic_missing").is_some(), "{document}");
    assert!(finding(&document, "identity_changed").is_none(), "{document}");
}

// Guarantee: commands.check-rollout
#[tokio::test(flavor = "multi_thread")]
async fn renamed_relay_needs_a_decision() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let named = |name: &str| toml(&database, "relay", None, &stdout_relay(name, ""));
    owner.batch_execute("INSERT INTO bookings SELECT FROM generate_series(1, 3)").await.unwrap();
    ends_well(&named("old"), &["run", "--once"]).await;
    let (code, document) = check(&named("new")).await;
    assert_eq!(code, Some(3));
    let (message, fix) = found(&document, "cursor_renamed", "error");
    let said = "no cursor new: the first run sends 3 rows. Cursor old has the same table and target, and no relay here: was \
                the relay renamed?";
    assert_eq!(message, said);
    assert!(
        fix.contains("`outbox-relay cursor rename old new`") && fix.contains("`outbox-relay cursor create new --now`")
    );
    ends_well(&named("new"), &["cursor", "create", "new", "--now"]).await;
    assert_eq!(check(&named("new")).await.0, Some(0), "it is new");
    ends_well(&named("new"), &["cursor", "remove", "new", "--yes"]).await;
    ends_well(&named("new"), &["cursor", "rename", "old", "new", "--yes"]).await;
    assert_eq!(check(&named("new")).await.0, Some(0), "it was renamed");
    // Beside the relay whose rows it reads, too, another relay is not a renamed one.
    let both = toml(&database, "relay", None, &(stdout_relay("new", "") + &stdout_relay("second", "")));
    let (code, document) = check(&both).await;
    assert_eq!(code, Some(0), "{document}");
}

// Guarantee: commands.check-rollout
#[tokio::test(flavor = "multi_thread")]
async fn first_run_is_counted() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let starting = |start: &str| toml(&database, "relay", None, &stdout_relay("s", start));
    let (code, document) = check(&starting("")).await;
    assert_eq!(code, Some(0));
    assert_eq!(found(&document, "cursor_new", "ok").0, "no cursor s yet: the first run sends 0 rows");
    owner.batch_execute("INSERT INTO bookings SELECT FROM generate_series(1, 12)").await.unwrap();
    let (code, document) = check(&starting("")).await;
    assert_eq!(code, Some(0));
    let (message, fix) = found(&document, "cursor_new", "warn");
    assert_eq!(message, "no cursor s yet: the first run sends 12 rows");
    assert_eq!(fix, "To begin elsewhere, first run `outbox-relay cursor create s --now`.");
    let (_, document) = check(&starting("start = \"now\"")).await;
    found(&document, "cursor_new", "ok");
    owner.batch_execute("DROP SCHEMA outbox CASCADE").await.unwrap();
    let (_, document) = check(&starting("")).await;
    assert!(finding(&document, "schema_version").is_some() && finding(&document, "database").is_none(), "{document}");
}

// Guarantee: commands.check-rollout
#[tokio::test(flavor = "multi_thread")]
async fn halted_cursor_keeps_no_pod_from_starting() {
    let (database, gateway) = (database().await, Gateway::start().await);
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute("ALTER TABLE bookings ADD phone text DEFAULT '+1'").await.unwrap();
    gateway.set(Mood::Refuse(400, r#"{"code":21211}"#));
    let text = toml(&database, "relay", None, &sms_relay("sms", &gateway, ""));
    owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    let process = Process::spawn(&text, &["run"]);
    halted(&owner, "sms").await;
    drop(process);
    let (code, document) = check(&text).await;
    // A pod that restarts changes nothing about the halt, and runs its other relays.
    assert_eq!(code, Some(0), "{document}");
    let (message, fix) = found(&document, "cursor_halted", "warn");
    assert!(message.starts_with("cursor sms is halted: poison twilio_21211: "), "{message}");
    assert!(message.ends_with("; it was halted under this configuration, and stays so"), "{message}");
    assert!(fix.contains("`outbox-relay cursor resume sms`"), "{fix}");
    // Another configuration ends a halt.
    let (code, document) = check(&text.replace(" confirmed", " is confirmed")).await;
    assert_eq!(code, Some(0), "{document}");
    let (message, _) = found(&document, "cursor_halted", "warn");
    assert!(message.ends_with("; another configuration, as this one is, ends the halt"), "{message}");
    // Nothing is wrong with the cursor once the halt has ended.
    gateway.set(Mood::Accept);
    let (code, _, log) = outbox_relay(&text, &["cursor", "resume", "sms"]).await;
    assert_eq!(code, Some(0), "{log}");
    assert!(finding(&check(&text).await.1, "cursor_halted").is_none());
}
