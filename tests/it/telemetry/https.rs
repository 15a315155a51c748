//! A collector by https: it is verified by its authority, and shown the relay's own certificate where it asks for one.

use super::{ended, exporting, metric};
use crate::http_access::certificates::Receiver;
use crate::support::outside::{finding, json, listener, stdout_relay};
use crate::support::tls::Authority;
use crate::support::{CLOCK, PATIENCE, Process, bookings, database, eventually, outbox_relay, toml};

// Guarantee: observe.spans-tls
#[tokio::test(flavor = "multi_thread")]
async fn collector_by_https_is_verified_and_shown_the_own_certificate() {
    let (database, authority) = (database().await, Authority::new());
    let owner = bookings(&database, CLOCK).await;
    // What it answers is an empty message of OTLP: it takes all.
    let receiver = Receiver::start(&authority).await;
    let url = format!("https://127.0.0.1:{}", receiver.port);
    let relay = toml(&database, "relay", None, &stdout_relay("events", ""));
    let text = |keys: &str| exporting(&relay, &url, &format!("sample = 1\n{keys}"));
    let level = async |keys: &str| {
        let (code, out, log) = outbox_relay(&text(keys), &["check", "-o", "json"]).await;
        assert_eq!(code, Some(0), "{out}{log}");
        let found = finding(&json(&out), "collector").unwrap().clone();
        println!("{found}");
        (found["level"].as_str().unwrap().to_owned(), found["message"].as_str().unwrap().to_owned())
    };
    let (found, message) = level("").await;
    assert!(found == "warn" && message.contains("certificate verify failed"), "{message}");
    let authorities = format!("ca_file = \"{}\"\n", authority.file().display());
    assert_eq!(level(&authorities).await.0, "warn", "without a certificate");
    assert!(receiver.shown().is_empty(), "nothing was sent");

    let own = authority.issue_client("relay", 2);
    let (certificate, key) = (own.certificate.display(), own.key.display());
    let keys = format!("{authorities}cert_file = \"{certificate}\"\nkey_file = \"{key}\"\n");
    assert_eq!(level(&keys).await.0, "ok");
    eventually(PATIENCE, async || receiver.shown() == ["relay"]).await;
    let mut process = Process::spawn(&text(&keys), &["run"]);
    let admin = listener(&process).await;
    owner.batch_execute("INSERT INTO bookings (payload) VALUES ('p')").await.unwrap();
    eventually(PATIENCE * 2, async || metric(&admin, "outbox_relay_spans_exported_total").await >= 2.0).await;
    eventually(PATIENCE, async || receiver.shown().len() >= 2).await;
    assert!(receiver.shown().iter().all(|name| name == "relay"), "{:?}", receiver.shown());
    assert_eq!(metric(&admin, "outbox_relay_spans_dropped_total").await, 0.0);
    assert_eq!(ended(&mut process).await, Some(0));
}
