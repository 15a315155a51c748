//! What status and cursor why say of rows that are not delivered.

mod encoding;

use serde_json::Value;

use crate::support::outside::{json, printed, stdout_relay};
use crate::support::{CLOCK, PATIENCE, Process, bookings, database, eventually, outbox_relay, toml};

/// What `cursor why` prints of an idle relay.
async fn idle(text: &str) -> Value {
    let (code, out, log) = outbox_relay(text, &["cursor", "why", "s", "-o", "json"]).await;
    assert_eq!(code, Some(0), "{out}{log}");
    let answer = json(&out);
    assert_eq!((&answer["reason"], &answer["ok"]), (&"idle".into(), &true.into()), "{answer}");
    answer
}

fn sentence(answer: &Value) -> &str {
    answer["summary"].as_str().unwrap()
}

/// `cursor why` of a relay that has delivered one row, after these rows were inserted.
async fn idle_after(rows: &[&str], more: &str) -> (Value, Vec<String>) {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("s", more));
    let process = Process::spawn(&text, &["run"]);
    owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    eventually(PATIENCE, || async { printed(&process, "s") == ["1"] }).await;
    for created_at in rows {
        owner.execute(&format!("INSERT INTO bookings (created_at) VALUES ({created_at})"), &[]).await.unwrap();
    }
    (idle(&text).await, printed(&process, "s"))
}

// Guarantee: failures.why-claims
#[tokio::test(flavor = "multi_thread")]
async fn why_names_rows_with_infinite_created_at() {
    let (answer, printed) = idle_after(&["'infinity'", "'infinity'"], "").await;
    assert_eq!(printed, ["1"]);
    let found = sentence(&answer);
    assert!(found.contains("2 rows have created_at infinity and are never delivered"), "{found}");
    assert!(!found.contains("every committed row"), "{found}");
}

// Guarantee: failures.why-claims
#[tokio::test(flavor = "multi_thread")]
async fn why_names_rows_after_now_and_the_nearest() {
    let (answer, printed) = idle_after(&["'294276-12-31 23:59:59.999999+00'", "now() + interval '1 year'"], "").await;
    assert_eq!(printed, ["1"]);
    let found = sentence(&answer);
    assert!(found.contains("2 rows have a created_at after now, the nearest at 20"), "{found}");
    assert!(found.contains("delivered when that time comes"), "{found}");
    assert!(!found.contains("infinity"), "{found}");
}

// Guarantee: failures.why-claims
#[tokio::test(flavor = "multi_thread")]
async fn why_names_row_at_minus_infinity_below_position() {
    let (answer, printed) = idle_after(&["'-infinity'"], "").await;
    assert_eq!(printed, ["1"]);
    let found = sentence(&answer);
    assert!(found.contains("1 row has created_at -infinity, below the position"), "{found}");
    assert!(!found.contains("every committed row"), "{found}");
}

// Guarantee: failures.why-claims
#[tokio::test(flavor = "multi_thread")]
async fn why_of_idle_relay_claims_only_what_it_knows() {
    let (answer, _) = idle_after(&[], "").await;
    assert_eq!(sentence(&answer), "s has nothing to do: no committed row waits after the position.");
    let keys: Vec<&str> = answer.as_object().unwrap().keys().map(String::as_str).collect();
    let known = [
        "backlog_capped",
        "backlog_rows",
        "cursor",
        "lag_seconds",
        "next_steps",
        "ok",
        "reason",
        "replicas",
        "schedules",
        "summary",
    ];
    let mut sorted = keys.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, known);
}
