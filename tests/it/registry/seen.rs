//! What an operator sees of replicas: `replica list`, `status`, `cursor why`.

use rustix::process::Signal;
use serde_json::Value;

use super::{CLOCK, PATIENCE, bookings, database, eventually, refuses, row, start, stdout_relay};
use crate::support::outside::{json, keys, line, printed};
use crate::support::{outbox_relay, toml};

/// What a command prints, and its exit code.
async fn printed_by(toml: &str, args: &[&str]) -> (Option<i32>, String) {
    let (code, out, log) = outbox_relay(toml, args).await;
    assert!(!out.is_empty(), "{args:?}: {log}");
    (code, out)
}

// Guarantee: failures.stray-replica
#[tokio::test]
async fn replica_list_status_and_why_name_the_stray_replica() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let relay = stdout_relay("events", "");
    let text = toml(&database, "relay", None, &relay);
    let healthy = start(&database, &relay, "healthy");
    line(&healthy, "relay ready").await;
    let changed = relay.replace("[[relay]]\n", "[[relay]]\non_poison = \"dead_letter\"\n");
    let mut stray = start(&database, &changed, "stray");
    refuses(&owner, "stray", Some("config_mismatch")).await;
    owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    eventually(PATIENCE, async || printed(&healthy, "events").len() == 1).await;
    let hash = async |name| row(&owner, name).await.unwrap().1[0]["config_hash"].as_str().unwrap().to_owned();
    let (one, other) = (hash("healthy").await, hash("stray").await);
    let (first, second) = (format!("{one} on healthy"), format!("{other} on stray (waits)"));

    let (code, out) = printed_by(&text, &["replica", "list"]).await;
    assert_eq!(code, Some(0));
    assert!(out.starts_with("REPLICA  VERSION  STARTED"), "{out}");
    assert!(out.contains("config_mismatch") && out.contains("relay events has 2 configurations: "), "{out}");
    assert!(out.contains(&first) && out.contains(&second), "{out}");
    println!("{out}");
    let listed = json(&printed_by(&text, &["replica", "list", "-o", "json"]).await.1);
    let [r1, r2] = listed["replicas"].as_array().unwrap().as_slice() else { panic!("two replicas: {listed}") };
    for key in ["id", "version", "started_at", "seen_at", "relays"] {
        assert!(keys(r1).contains(key), "{key} in {r1}");
    }
    assert_eq!((&r1["id"], &r1["relays"][0]["refused"]), (&"healthy".into(), &Value::Null));
    assert_eq!((&r2["id"], &r2["relays"][0]["refused"]["code"]), (&"stray".into(), &"config_mismatch".into()));

    let (code, out) = printed_by(&text, &["status"]).await;
    assert!(code == Some(0) && out.contains(&first) && out.contains(&second), "{out}");
    assert!(out.contains("\nrelay events has 2 configurations: "), "it is of no one cursor: {out}");
    println!("{out}");
    let document = json(&printed_by(&text, &["status", "-o", "json"]).await.1);
    assert_eq!(document["replicas"].as_array().unwrap().len(), 2, "{document}");
    let (code, out) = printed_by(&text, &["cursor", "why", "events"]).await;
    assert!(code == Some(0) && out.contains(&first) && out.contains(&second), "{out}");
    println!("{out}");

    stray.signal(Signal::TERM);
    assert_eq!(stray.wait().await, Some(0), "{}", stray.log());
    let (_, out) = printed_by(&text, &["replica", "list"]).await;
    assert!(!out.contains("stray"), "{out}");
    let (_, out) = printed_by(&text, &["replica", "list", "--all"]).await;
    assert!(out.lines().any(|line| line.starts_with("stray") && line.contains("stopped 2")), "{out}");
    let (_, out) = printed_by(&text, &["cursor", "why", "events"]).await;
    assert!(!out.contains("configurations"), "{out}");
}

// Guarantee: failures.stray-replica
#[tokio::test]
async fn refusal_of_one_replica_is_seen_while_others_move() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute("REVOKE SELECT ON bookings FROM relay_stats").await.unwrap();
    let relay = stdout_relay("events", "");
    let healthy = start(&database, &relay, "healthy");
    line(&healthy, "relay ready").await;
    let text = toml(&database, "relay_stats", None, &relay);
    let _blind = crate::support::Process::spawn(&text, &["run", "--replica-id", "blind"]);
    eventually(PATIENCE * 2, async || row(&owner, "blind").await.is_some_and(|(_, r)| r[0]["refused"].is_object()))
        .await;
    let text = toml(&database, "relay", None, &relay);
    for args in [&["cursor", "why", "events"][..], &["status"], &["replica", "list"]] {
        let (_, out) = printed_by(&text, args).await;
        assert!(out.contains("replica blind refuses events: "), "{args:?}: {out}");
        assert!(!out.contains("halted"), "{args:?}: {out}");
        println!("{out}");
    }
}

// Guarantee: failures.no-replica
#[tokio::test]
async fn cursor_without_a_replica_has_its_state_and_no_lag() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let both = stdout_relay("events", "") + &stdout_relay("dropped", "");
    let mut first = start(&database, &both, "first");
    eventually(PATIENCE, async || first.log().matches("\"relay ready\"").count() == 2).await;
    first.signal(Signal::TERM);
    assert_eq!(first.wait().await, Some(0), "{}", first.log());
    let text = toml(&database, "relay", None, &stdout_relay("events", ""));
    let state = async |name: &str| {
        let document = json(&printed_by(&text, &["status", "-o", "json"]).await.1);
        let cursors = document["cursors"].as_array().unwrap().clone();
        cursors.iter().find(|cursor| cursor["name"] == name).unwrap()["state"].clone()
    };
    assert_eq!((state("events").await, state("dropped").await), ("no_replica".into(), "no_replica".into()));
    let lag = ["status", "--max-lag", "1m"];
    assert_eq!(printed_by(&text, &lag).await.0, Some(3), "with no replica at all, the lag of what is not known counts");
    let second = start(&database, &stdout_relay("events", ""), "second");
    line(&second, "relay ready").await;
    eventually(PATIENCE, async || row(&owner, "second").await.is_some()).await;
    assert_eq!((state("events").await, state("dropped").await), ("idle".into(), "no_replica".into()));
    let (code, out) = printed_by(&text, &lag).await;
    assert_eq!(code, Some(0), "{out}");
    println!("{out}");
}
