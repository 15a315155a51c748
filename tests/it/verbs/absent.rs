//! A relay that no live replica has: what the commands print of it, and what they advise.

use super::{ends, insert};
use crate::support::gateway::{Gateway, Mood, sms_relay};
use crate::support::outside::{json, line, stdout_relay};
use crate::support::{CLOCK, PATIENCE, Process, bookings, database, eventually, toml};

#[tokio::test(flavor = "multi_thread")]
async fn absent_relay_error_is_past_not_present() {
    let (database, gateway) = (database().await, Gateway::start().await);
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute("ALTER TABLE bookings ADD phone text DEFAULT '+1'").await.unwrap();
    gateway.set(Mood::Refuse(503, "{}"));
    let dl = sms_relay("dl", &gateway, "");
    insert(&owner, 1).await;
    let text = toml(&database, "relay", None, &dl);
    ends(1, &text, &["run", "--once", "--timeout", "3s"]).await;
    let other = toml(&database, "relay", None, &stdout_relay("other", ""));
    let process = Process::spawn(&other, &["run", "--replica-id", "eu-1"]);
    line(&process, "relay ready").await;
    let reported = "SELECT EXISTS (SELECT FROM outbox.replica WHERE id = 'eu-1' AND relays -> 0 ->> 'name' = 'other')";
    eventually(PATIENCE, async || owner.query_one(reported, &[]).await.unwrap().get(0)).await;
    // Whether the sink's circuit is open or not, and whether this configuration has the relay or not.
    for (circuit, text) in [("NULL", &text), ("now()", &text), ("now()", &other)] {
        let circuit = format!("UPDATE outbox.cursor_status SET circuit_opened_at = {circuit} WHERE cursor = 'dl'");
        owner.batch_execute(&circuit).await.unwrap();
        let (out, _) = ends(3, text, &["cursor", "why", "dl", "-o", "json"]).await;
        let answer = json(&out);
        assert_eq!(answer["reason"], "no_replica", "{answer}");
        let said = answer["summary"].as_str().unwrap();
        assert!(said.starts_with("No live replica has relay dl; its last error, 20"), "{said}");
        assert!(said.contains(", was http_503: "), "{said}");
        let (out, _) = ends(3, text, &["cursor", "why", "dl"]).await;
        println!("{out}");
        assert!(out.contains("`outbox-relay cursor remove dl`") && !out.contains("by itself"), "{out}");
        let (out, _) = ends(0, text, &["status"]).await;
        println!("{out}");
        assert!(out.contains("no_replica") && out.contains(" ago: retry http_503: "), "{out}");
        let (list, _) = ends(0, text, &["cursor", "list"]).await;
        println!("{list}");
        assert!(list.lines().any(|line| line.starts_with("dl ") && line.ends_with(" no_replica")), "{list}");
        assert!(out.contains("\n  last error, ") && !out.contains("\n  error:") && !out.contains("sink:"), "{out}");
    }
}
