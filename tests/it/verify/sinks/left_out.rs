//! What cannot be compared is said, with the reason and what to do, and is never equal.

use super::super::{differences, verify};
use super::{KEEP, SWEPT, Sent};
use crate::support::outbox_relay;

// Guarantee: verify.left-out
#[tokio::test(flavor = "multi_thread")]
async fn range_of_which_nothing_is_recorded_ends_with_1_and_the_fix() {
    let sent = Sent::plain(4).await;
    sent.forget().await;
    let (code, document, log) = verify(&sent.text, &["hooks"]).await;
    assert_eq!((code, document), (Some(1), serde_json::Value::Null), "{log}");
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
    assert!(log.contains("deleted an hour later, because [audit] keep is not set"), "{log}");
    let kept = format!("{}{KEEP}", sent.text);
    sent.owner.batch_execute(&aged("8 days")).await.unwrap();
    let (code, _, log) = verify(&kept, &["hooks", "--since", "9d"]).await;
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("older than [audit] keep") && log.contains("Compare a range of the last 7d"), "{log}");
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
