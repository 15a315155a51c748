//! A broker that wants to know more than the token: its own name, say, as those of Confluent Cloud do.

use outbox_testkit::kafka::BrokerOptions;
use rustix::process::Signal;
use tempfile::TempDir;

use super::{Issuer, Stage, classes};
use crate::support::outside::{finding, json, standing};
use crate::support::{Process, outbox_relay};

/// What tests/kafka/Extensions.java wants.
const WANTED: &str = "extensions = { logicalCluster = \"lkc-1\", identityPoolId = \"pool-1\" }\n";

/// A broker whose listener compares them, and the class by which it does.
async fn stage() -> (Stage, TempDir) {
    let (issuer, classes) = (Issuer::new(3600), classes::compiled("Extensions"));
    let mut listener = issuer.listener();
    for (key, value) in &mut listener.settings {
        if key.ends_with("callback.handler.class") {
            "Extensions".clone_into(value);
        }
    }
    let options = BrokerOptions {
        listeners: vec![listener],
        classes: Some(classes.path().to_owned()),
        ..BrokerOptions::default()
    };
    (Stage::with(issuer, &options).await, classes)
}

// Guarantee: secrets.oauth2-extensions
#[tokio::test(flavor = "multi_thread")]
async fn extensions_are_sent_with_the_token_and_wrong_ones_halt() {
    let (stage, _classes) = stage().await;
    let scene = &stage.scene;
    scene.book().await;
    let (code, out, log) = outbox_relay(&stage.text(), &["check", "-o", "json"]).await;
    let document = json(&out);
    let found = finding(&document, "kafka_refused").unwrap_or_else(|| panic!("{out}{log}"));
    println!("{found}");
    assert_eq!(code, Some(3), "without extensions: {out}");
    let wrong = stage.text_with(&WANTED.replace("lkc-1", "lkc-2"));
    let mut process = Process::spawn(&wrong, &["run"]);
    let refused = scene.has_code("kafka_authentication").await;
    println!("{refused}");
    assert!(refused["hint"].as_str().unwrap().contains("extensions"), "{refused}");
    assert!(standing(&scene.owner, "k").await.unwrap().1, "halted");
    process.signal(Signal::TERM);
    assert_eq!(process.wait().await, Some(0), "{}", process.log());
    let right = stage.text_with(WANTED);
    let (code, out, log) = outbox_relay(&right, &["check"]).await;
    assert_eq!(code, Some(0), "{out}{log}");
    // Another configuration ends the halt.
    let process = Process::spawn(&right, &["run"]);
    scene.book().await;
    scene.has_all().await;
    assert!(!process.log().contains("relay halted"), "{}", process.log());
    stage.scene.broker.stop().await.unwrap();
}
