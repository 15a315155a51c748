//! What cannot be compared is said, with the reason and what to do, and is never equal.

use rustix::process::Signal;
use serde_json::Value;

use super::super::{differences, drain, insert, pass_over, verify};
use super::{KEEP, SWEPT, Sent};
use crate::support::{PATIENCE, Process, eventually, outbox_relay};

/// How many rows were not compared, and up to which id.
fn left_out(document: &Value) -> Vec<String> {
    let parts = document["not_compared"].as_array().unwrap().iter();
    parts.map(|part| format!("{} up to {}", part["rows"], part["up_to"]["id"].as_str().unwrap())).collect()
}

/// An instant as arguments have it.
const UTC: &str = "YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"";

// Guarantee: verify.left-out
#[tokio::test(flavor = "multi_thread")]
async fn range_of_which_nothing_is_recorded_ends_with_1_and_the_fix() {
    let sent = Sent::plain(4).await;
    sent.forget().await;
    let (code, document, log) = verify(&sent.text, &["hooks"]).await;
    assert_eq!((code, document), (Some(1), Value::Null), "{log}");
    assert!(log.contains("hooks: nothing could be compared: 4 rows from "), "{log}");
    assert!(log.contains("nothing is recorded of then") && log.contains("Write [audit] keep = \"7d\""), "{log}");
    // As older versions do.
    let aged = |by: &str| {
        format!(
            "UPDATE bookings SET created_at = created_at - interval '{by}'; \
             UPDATE outbox.cursor SET position_created_at = position_created_at - interval '{by}'"
        )
    };
    sent.owner.batch_execute(&aged("3 hours")).await.unwrap();
    let (code, _, log) = verify(&sent.text, &["hooks", "--since", "1d"]).await;
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("was kept for two hours, because [audit] keep is not set"), "{log}");
    let kept = format!("{}{KEEP}", sent.text);
    sent.owner.batch_execute(&aged("8 days")).await.unwrap();
    let (code, _, log) = verify(&kept, &["hooks", "--since", "9d"]).await;
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("older than [audit] keep") && log.contains("Compare a range of the last 168h"), "{log}");
}

// Guarantee: verify.left-out
#[tokio::test(flavor = "multi_thread")]
async fn part_that_is_not_recorded_is_not_called_equal() {
    let sent = Sent::plain(4).await;
    sent.forget().await;
    sent.deliver(3).await;
    let (code, document, log) = verify(&sent.text, &["hooks"]).await;
    assert_eq!((code, &document["ok"], &document["slices"]), (Some(1), &false.into(), &1.into()), "{document}{log}");
    assert_eq!(differences(&document), Vec::<String>::new());
    let left_out = &document["not_compared"][0];
    assert_eq!((&left_out["rows"], &left_out["up_to"]["id"]), (&4.into(), &"4".into()), "{document}");
    assert!(left_out["reason"].as_str().unwrap().contains("nothing is recorded of then"), "{document}");
    let (code, out, _) = outbox_relay(&sent.text, &["verify", "hooks"]).await;
    assert_eq!(code, Some(1), "{out}");
    assert!(out.starts_with("hooks: no difference found, and 4 rows not compared\n"), "{out}");
    assert!(out.contains("  not compared: 4 rows of hooks between "), "{out}");
    sent.owner.batch_execute("DELETE FROM bookings WHERE id = 6").await.unwrap();
    let (code, document, _) = verify(&sent.text, &["hooks"]).await;
    assert_eq!(
        (code, differences(&document)),
        (Some(3), vec!["not_in_table 6".to_owned()]),
        "what differs counts more"
    );
}

// Guarantee: verify.left-out
#[tokio::test(flavor = "multi_thread")]
async fn rows_that_replicas_with_another_audit_passed_are_not_called_lost() {
    for (sql, other) in [(SWEPT, ""), ("", "[audit]\nenabled = false\n")] {
        let sent = Sent::new(4, sql, "", KEEP).await;
        let without = sent.text.replace(KEEP, other);
        // As replicas take turns while [audit] keep is rolled out.
        for text in [&without, &without, &sent.text, &without, &sent.text] {
            insert(&sent.owner, 2).await;
            drain(text).await;
        }
        assert_eq!(sent.hook.accepted().len(), 14);
        let (code, document, log) = verify(&sent.text, &["hooks"]).await;
        assert_eq!((code, differences(&document)), (Some(1), vec![]), "{document}{log}");
        assert_eq!(left_out(&document), ["4 up to 8", "2 up to 12"], "{document}");
        assert_eq!(document["rows"], serde_json::json!({ "table": 14, "delivered": 8, "topic": null }));
        let first = &document["not_compared"][0];
        assert!(first["reason"].as_str().unwrap().contains("a replica with another [audit]"), "{document}");
        assert!(first["fix"].as_str().unwrap().contains("the same [audit]"), "{document}");
        if sql == SWEPT {
            continue; // there the next turn would find what the position was moved over
        }
        insert(&sent.owner, 1).await;
        pass_over(&sent.owner, "hooks", 15).await;
        let (code, document, log) = verify(&sent.text, &["hooks"]).await;
        let named = vec!["not_delivered 15".to_owned()];
        assert_eq!((code, differences(&document)), (Some(3), named), "no turn has passed it: {document}{log}");
        assert_eq!(left_out(&document).len(), 2, "{document}");
    }
}

// Guarantee: verify.left-out
#[tokio::test(flavor = "multi_thread")]
async fn rows_that_turns_under_at_most_once_passed_are_not_called_lost() {
    for lanes in ["", "[relay.turn]\nin_flight = 4\nlane = \"customer\"\n"] {
        let sent = Sent::new(4, "", "", &format!("{lanes}{KEEP}")).await;
        let once = sent.text.replace("start =", "guarantee = \"at_most_once\"\nstart =");
        assert_ne!(once, sent.text);
        for text in [&once, &once, &sent.text, &once, &sent.text] {
            insert(&sent.owner, 2).await;
            drain(text).await;
        }
        assert_eq!(sent.hook.accepted().len(), 14);
        let (code, document, log) = verify(&sent.text, &["hooks"]).await;
        assert_eq!((code, differences(&document)), (Some(1), vec![]), "{document}{log}");
        assert_eq!(left_out(&document), ["4 up to 8", "2 up to 12"], "{document}");
        assert_eq!(document["rows"], serde_json::json!({ "table": 14, "delivered": 8, "topic": null }));
        let first = &document["not_compared"][0];
        assert!(first["reason"].as_str().unwrap().contains("or under at_most_once"), "{document}");
        assert!(first["fix"].as_str().unwrap().contains("the same [audit] and guarantee"), "{document}");
    }
}

// Guarantee: verify.left-out
#[tokio::test(flavor = "multi_thread")]
async fn move_back_and_adoption_are_named_with_a_fix_of_their_own() {
    let sent = Sent::new(0, "", "", KEEP).await;
    for _ in 0..5 {
        sent.deliver(1).await;
    }
    let (code, _, log) = outbox_relay(&sent.text, &["cursor", "seek", "hooks", "--after-id", "3", "--yes"]).await;
    assert_eq!(code, Some(0), "{log}");
    drain(&sent.text).await;
    assert_eq!(sent.hook.accepted().len(), 7, "two rows come again");
    let (code, document, log) = verify(&sent.text, &["hooks"]).await;
    assert_eq!((code, differences(&document)), (Some(1), vec![]), "{document}{log}");
    let (left_out, at) = (&document["not_compared"][0], document["not_compared"][0]["up_to"]["created_at"].as_str());
    assert_eq!((&left_out["rows"], &left_out["up_to"]["id"]), (&3.into(), &"3".into()), "{document}");
    assert_eq!(left_out["reason"], "a `cursor seek` back has ended what was recorded before");
    let fix = left_out["fix"].as_str().unwrap();
    assert!(fix.contains(&format!("--since {}", at.unwrap())) && !fix.contains("keep"), "{fix}");
    // What it says helps: the rows of that instant are the last that are left out.
    let after =
        "SELECT to_char((created_at + interval '1 microsecond') AT TIME ZONE 'UTC', $1) FROM bookings WHERE id = 3";
    let after: String = sent.owner.query_one(after, &[&UTC]).await.unwrap().get(0);
    let (code, document, log) = verify(&sent.text, &["hooks", "--since", &after]).await;
    assert_eq!((code, &document["rows"]["delivered"]), (Some(0), &2.into()), "{document}{log}");

    // Another receiver: nothing is recorded of what it got.
    let other = sent.text.replace("/rows\"", "/others\"");
    let (code, _, log) = outbox_relay(&other, &["cursor", "adopt", "hooks", "--yes"]).await;
    assert_eq!(code, Some(0), "{log}");
    let mut replica = Process::spawn(&other, &["run"]);
    let adopted =
        "SELECT c.seek_applied = k.seek_seq FROM outbox.cursor AS c JOIN outbox.control AS k ON k.cursor = c.name";
    eventually(PATIENCE * 2, async || sent.owner.query_one(adopted, &[]).await.unwrap().get(0)).await;
    replica.signal(Signal::TERM);
    assert_eq!(replica.wait().await, Some(0), "{}", replica.log());
    let (code, _, log) = verify(&other, &["hooks"]).await;
    assert_eq!(code, Some(1), "{log}");
    let why = "5 rows from ";
    assert!(log.contains(why) && log.contains("a `cursor adopt` has ended what was recorded before"), "{log}");
    assert!(log.contains("Compare rows from there on: --since ") && !log.contains("[audit] keep"), "{log}");
}

// Guarantee: verify.left-out
#[tokio::test(flavor = "multi_thread")]
async fn relay_that_records_nothing_is_refused_with_the_reason() {
    let sent = Sent::new(1, SWEPT, "", "").await;
    let said = async |text: &str, args: &[&str]| {
        let (code, _, log) = verify(text, args).await;
        assert_eq!(code, Some(1), "{log}");
        log
    };
    let log = said(&sent.text, &["hooks"]).await;
    assert!(log.contains("its column txid tells late rows") && log.contains("Write [audit] keep = \"7d\""), "{log}");
    let once = sent.text.replace("start =", "guarantee = \"at_most_once\"\nstart =") + KEEP;
    let log = said(&once, &["hooks"]).await;
    assert!(log.contains("hooks sends to webhook") && log.contains("its guarantee is at_most_once"), "{log}");
    let off = format!("{}[audit]\nenabled = false\n", sent.text);
    let log = said(&off, &["hooks"]).await;
    assert!(log.contains("[audit] enabled is false") && log.contains("Write [audit] enabled = true"), "{log}");
    let kept = format!("{}{KEEP}", sent.text);
    for (option, instead) in [("--repair", "dead-letter redrive"), ("--follow", "run it again")] {
        let log = said(&kept, &["hooks", option]).await;
        assert!(
            log.contains(&format!("{option} is for relays that publish to Kafka")) && log.contains(instead),
            "{log}"
        );
    }
}
