//! Who may see the page.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::*;
use crate::support::outbox_relay;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Status, and what the answer asks for.
async fn ask(url: &str, authorization: Option<&str>) -> (u16, String) {
    let request = client().get(url);
    let request = match authorization {
        Some(authorization) => request.header("authorization", authorization),
        None => request,
    };
    let response = request.send().await.unwrap();
    (response.status().as_u16(), header(&response, "www-authenticate").to_owned())
}

// Guarantee: page.token
#[tokio::test(flavor = "multi_thread")]
async fn with_a_token_file_the_page_asks_for_a_token_and_probes_do_not() {
    let database = database().await;
    let _owner = bookings(&database, CLOCK).await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("tokens");
    std::fs::write(&file, format!("{TOKEN}\n")).unwrap();
    for for_metrics in [false, true] {
        let keys = format!("[admin]\ntoken_file = \"{}\"\ntoken_for_metrics = {for_metrics}\n", file.display());
        let text = toml(&database, "relay", None, &stdout_relay("events", "")).replace("[admin]\n", &keys);
        let process = Process::spawn(&text, &["run"]);
        let url = listener(&process).await;
        let basic = format!("Basic {}", STANDARD.encode(format!("anyone:{TOKEN}")));
        let bearer = format!("Bearer {TOKEN}");
        let asks = (401, "Basic realm=\"outbox-relay\"".to_owned());
        for path in ["", "events", "page.css", "page.js"] {
            let url = format!("{url}/{path}");
            for right in [&basic, &bearer] {
                assert_eq!(ask(&url, Some(right)).await, (200, String::new()), "{path}");
            }
            for wrong in [None, Some("Bearer 0123456789abcdef0123456789abcdeX"), Some("Basic !"), Some(TOKEN)] {
                assert_eq!(ask(&url, wrong).await, asks, "{path} {wrong:?}");
            }
        }
        let metrics = if for_metrics { asks.clone() } else { (200, String::new()) };
        assert_eq!(ask(&format!("{url}/metrics"), None).await, metrics);
        assert_eq!(ask(&format!("{url}/metrics"), Some(&bearer)).await.0, 200);
        assert_eq!(ask(&format!("{url}/livez"), None).await.0, 200);
        eventually(PATIENCE * 2, async || ask(&format!("{url}/readyz"), None).await.0 == 200).await;
        if for_metrics {
            std::fs::write(&file, "fedcba9876543210fedcba9876543210").unwrap();
            assert_eq!(ask(&format!("{url}/"), Some(&basic)).await, asks, "a changed file counts at once");
            std::fs::remove_file(&file).unwrap();
            assert_eq!(ask(&format!("{url}/"), Some(&basic)).await.0, 503, "a lost one lets no request in");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_file_that_cannot_be_used_ends_the_start_and_is_an_error_of_check() {
    let database = database().await;
    let _owner = bookings(&database, CLOCK).await;
    let keys = "[admin]\ntoken_file = \"/nowhere/tokens\"\n";
    let text = toml(&database, "relay", None, &stdout_relay("events", "")).replace("[admin]\n", keys);
    let (code, _, log) = outbox_relay(&text, &["run"]).await;
    assert!(code == Some(1) && log.contains("cannot read [admin] token_file /nowhere/tokens"), "{log}");
    let (code, out, _) = outbox_relay(&text, &["check"]).await;
    assert!(code == Some(3) && out.contains("admin_tokens") && out.contains("Write a token into the file"), "{out}");
}
