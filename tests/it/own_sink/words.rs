//! What people are told of a sink of one's own: by `check`, by `config show`, by a configuration that is wrong.

use serde_json::Value;

use super::{Stage, command};
use crate::support::outbox_relay;

fn finding(document: &Value, code: &str) -> Value {
    let findings = document["findings"].as_array().unwrap();
    let found = findings.iter().find(|finding| finding["code"] == code);
    found.unwrap_or_else(|| panic!("{code}: {document}")).clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn check_says_whether_the_receiver_of_an_own_sink_is_there() {
    let mut stage = Stage::of_bookings("").await;
    let document = stage.json(&["check", "-o", "json"]).await;
    assert_eq!(document["ok"], true, "{document}");
    let there = finding(&document, "custom");
    assert_eq!((&there["relay"], &there["level"]), (&"own".into(), &"ok".into()));
    assert!(there["message"].as_str().unwrap().contains(&stage.socket.path().display().to_string()), "{there}");
    assert_eq!(finding(&document, "whole_row")["level"], "warn");
    stage.socket.down().await;
    let (code, _, log) = stage.command(&["check"]).await;
    assert_eq!(code, Some(3), "{log}");
    let away = finding(&stage.json(&["check", "-o", "json"]).await, "custom_unreachable");
    assert_eq!(away["level"], "error");
    assert!(away["fix_setting"].as_str().unwrap().contains("Start the receiver"), "{away}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_kind_or_key_of_an_own_sink_ends_with_2_and_says_what_is_right() {
    let stage = Stage::of_bookings("").await;
    for (from, to, told) in [
        ("\"unix_socket\"", "\"unix_sockt\"", "did you mean \"unix_socket\"?"),
        ("\"unix_socket\"", "\"carrier_pigeon\"", "registered are: unix_socket"),
        ("\npath = ", "\npth = ", "relay[own].sink.custom.pth: unknown field `pth`, expected `path`"),
    ] {
        let text = stage.toml.replace(from, to);
        for verb in [&["check"][..], &["run"], &["config", "show", "--redacted"]] {
            let (code, _, log) = command(&text, verb).await;
            assert_eq!(code, Some(2), "{log}");
            assert!(log.contains(told), "{log}");
        }
    }
    let (code, _, log) = outbox_relay(&stage.toml, &["check"]).await;
    assert_eq!(code, Some(2), "{log}");
    assert!(log.contains("this program has no sinks of its own"), "{log}");
    let (code, out, log) = stage.command(&["config", "show", "--redacted"]).await;
    assert_eq!(code, Some(0), "{log}");
    assert!(out.contains("kind = \"unix_socket\"") && out.contains("path = \"***\""), "{out}");
}
