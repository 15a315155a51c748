//! The page docs/howto/requests.md is right: its TOML and its SQL, as they stand, send.

use outbox_relay::migrate::app_grants;
use outbox_testkit::provider::{Answer, Provider};

use crate::support::pages::connected;
use crate::support::{database, outbox_relay};

/// The only block of this language that has `mark`.
fn block(page: &str, language: &str, mark: &str) -> String {
    let blocks = page.split("```").skip(1).step_by(2);
    let mut found = blocks.filter_map(|block| block.strip_prefix(language)).filter(|block| block.contains(mark));
    let block = found.next().expect(mark).to_owned();
    assert!(found.next().is_none(), "{mark} stands in two blocks");
    block
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_on_requests_can_be_followed_word_for_word() {
    let page = std::fs::read_to_string("docs/howto/requests.md").unwrap();
    let provider = Provider::start(|_| Answer::Accept).await.unwrap();
    let database = database().await;
    let owner = database.connect("postgres").await;
    owner.batch_execute(&app_grants("app")).await.unwrap();
    let host = "https://mail.internal";
    let toml = block(&page, "toml", "[[relay]]");
    assert!(toml.contains(host), "{toml}");
    let of = |role: &str| {
        let toml = connected(&toml, &database.url(role)).replace(host, &provider.url());
        format!("{toml}\n[admin]\nlisten = \"127.0.0.1:0\"\n")
    };
    let up = ["migrate", "up", "--relay-role", "relay", "--app-role", "app"];
    let (code, _, log) = outbox_relay(&of("postgres"), &up).await;
    assert_eq!(code, Some(0), "{log}");
    let (code, out, log) = outbox_relay(&of("relay"), &["check"]).await;
    assert_eq!(code, Some(0), "{out}{log}");
    let app = database.connect("app").await;
    let ask = block(&page, "sql", "enqueue_once");
    let answer = async || {
        let row = app.query_one(ask.trim().trim_end_matches(';'), &[]).await.unwrap();
        (row.get::<_, String>("status"), row.get::<_, bool>("already_sent"))
    };
    assert_eq!(answer().await, ("pending".to_owned(), false));
    assert_eq!(answer().await, ("pending".to_owned(), false));
    let (code, _, log) = outbox_relay(&of("relay"), &["run", "--once"]).await;
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(answer().await, ("completed".to_owned(), true));
    let received = provider.received();
    assert_eq!(received.len(), 1);
    assert_eq!(received[0].request.body, r#"{"to": "ada", "template": "welcome", "name": "Ada"}"#);
    let (code, out, _) = outbox_relay(&of("relay"), &["request", "show", "--key", "ada:welcome"]).await;
    assert_eq!(code, Some(0), "{out}");
}
