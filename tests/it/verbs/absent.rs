//! A relay that no live replica has: what the commands print of it, and what they advise.

use super::{ends, insert};
use crate::support::gateway::{Gateway, Mood, sms_relay};
use crate::support::outside::{json, line, stdout_relay};
use crate::support::receiver::Receiver;
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
        let (list, _) = ends(0, text, &["cursor", "list", "-o", "json"]).await;
        let list = json(&list);
        let dl = list["cursors"].as_array().unwrap().iter().find(|cursor| cursor["name"] == "dl");
        assert_eq!(dl.unwrap_or_else(|| panic!("{list}"))["state"], "no_replica");
        assert!(out.contains("\n  last error, ") && !out.contains("\n  error:") && !out.contains("sink:"), "{out}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn redrive_of_absent_relay_names_the_run() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("s", ""));
    let other = toml(&database, "relay", None, &stdout_relay("other", ""));
    insert(&owner, 1).await;
    ends(0, &text, &["run", "--once"]).await;
    owner
        .batch_execute(
            "INSERT INTO outbox.dead_letter (cursor, source, created_at, message_id, sink, target, fields, field_values, \
             error, dead_lettered_by) SELECT 's', 'public.bookings', created_at, id::text, 'stdout', '-', '{}', '{}', '{}', \
             'r' FROM bookings",
        )
        .await
        .unwrap();
    let run = "`outbox-relay run --once --relay s`";
    let (out, _) = ends(0, &text, &["dead-letter", "redrive", "--cursor", "s", "--yes"]).await;
    println!("{out}");
    assert!(out.contains("1 of 1: waits for a turn; no live replica has relay s: ") && out.contains(run), "{out}");
    assert!(!out.contains("cursor's next turn"), "{out}");
    // What is redriven needs no second redrive.
    let (_, log) = ends(1, &other, &["cursor", "remove", "s", "--dry-run"]).await;
    println!("{log}");
    let waits = format!("1 dead letter -> 1 waits for a turn: configure the relay again, {run}; or ");
    assert!(log.contains(&waits) && !log.contains("redrive"), "{log}");
    let _process = Process::spawn(&text, &["run"]);
    let sent = "SELECT count(*) FROM outbox.dead_letter WHERE state = 'redriven'";
    eventually(PATIENCE * 2, async || owner.query_one(sent, &[]).await.unwrap().get::<_, i64>(0) == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redrive_names_the_absent_relays_only() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = bookings(&database, CLOCK).await;
    receiver.answer(|_| (422, std::time::Duration::ZERO));
    let relay = |name: &str| receiver.relay(name, "on_poison = \"dead_letter\"");
    let all = toml(&database, "relay", None, &["a", "b", "here"].map(relay).concat());
    insert(&owner, 1).await;
    ends(0, &all, &["run", "--once"]).await;
    let process = Process::spawn(&toml(&database, "relay", None, &relay("here")), &["run", "--replica-id", "eu-1"]);
    line(&process, "relay ready").await;
    let reported = "SELECT EXISTS (SELECT FROM outbox.replica WHERE id = 'eu-1' AND relays -> 0 ->> 'name' = 'here')";
    eventually(PATIENCE, async || owner.query_one(reported, &[]).await.unwrap().get(0)).await;
    let ids = owner.query("SELECT id::text FROM outbox.dead_letter ORDER BY cursor", &[]).await.unwrap();
    let ids: Vec<String> = ids.iter().map(|row| row.get(0)).collect();
    let redrive = async |ids: &[String]| {
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        ends(0, &all, &[&["dead-letter", "redrive", "--yes"], &ids[..]].concat()).await.0
    };
    let out = redrive(&ids[2..]).await;
    assert!(out.ends_with("1 of 1: will be sent again by the cursor's next turn\n"), "{out}");
    let out = redrive(&ids[..2]).await;
    let said = "2 of 2: wait for a turn; no live replica has relays a, b: start one whose configuration has it, or \
                `outbox-relay run --once --relay a --relay b`\n";
    assert!(out.ends_with(said), "{out}");
    let out = redrive(&ids).await;
    assert!(out.contains("no live replica has relays a, b: "), "{out}");
}

#[tokio::test(flavor = "multi_thread")]
async fn redriven_letters_refused_again_fail_a_run() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = bookings(&database, CLOCK).await;
    receiver.answer(|request| (if request.key == "dl/2" { 422 } else { 200 }, std::time::Duration::ZERO));
    let text = toml(&database, "relay", None, &receiver.relay("dl", "on_poison = \"dead_letter\""));
    insert(&owner, 3).await;
    ends(0, &text, &["run", "--once"]).await;
    ends(0, &text, &["dead-letter", "redrive", "--cursor", "dl", "--yes"]).await;
    let (_, log) = ends(1, &text, &["run", "--once"]).await;
    let last = log.lines().rfind(|line| line.contains("refused again: ")).unwrap_or_else(|| panic!("{log}"));
    println!("{last}");
    assert!(last.contains("1 redriven dead letter was refused again: `outbox-relay dead-letter list --cursor dl`"));
    assert!(!log.contains("nothing left to relay"), "{log}");
    // What was not redriven does not count.
    ends(0, &text, &["run", "--once"]).await;
}
