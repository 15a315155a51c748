//! The pages of docs/howto are right: their SQL and their TOML, put together as they stand, pass `check` and send.

use outbox_testkit::provider::{Answer, Provider};
use serde_json::Value;

use crate::support::outside::json;
use crate::support::pages::{blocks, connected, page};
use crate::support::{Database, database, outbox_relay};

const REMINDER_TABLE: &str = r#"
    CREATE TABLE public.todos ("id" text NOT NULL, "workspaceId" text NOT NULL, "dueDate" timestamptz,
        "delayNotificationSent" boolean DEFAULT false, PRIMARY KEY ("workspaceId", "id"));
    INSERT INTO public.todos VALUES ('7', 'blue', now()), ('8', 'blue', now() + interval '1 min')"#;
const USERS: &str = "
    CREATE TABLE public.users (id bigint PRIMARY KEY, email text NOT NULL, created timestamp NOT NULL,
        sent_welcome boolean NOT NULL DEFAULT false);
    INSERT INTO public.users SELECT i, 'u' || i, (now() AT TIME ZONE 'UTC') - interval '359 min' - i * interval '1 min'
    FROM generate_series(0, 1) AS i";

/// Does what a page says, and answers what the provider got: methods, paths, and keys without their due instants.
async fn follow(name: &str, table: &str, provider: &Provider, host: &str) -> Vec<(String, String, String)> {
    let database: Database = database().await;
    let owner = database.connect("postgres").await;
    owner.batch_execute(table).await.unwrap();
    let page = page(name);
    let grants = blocks(&page, "sql").into_iter().find(|sql| sql.contains("GRANT")).expect("index and grants");
    for statement in grants.split_inclusive(';').filter(|statement| !statement.trim().is_empty()) {
        // One at a time: CREATE INDEX CONCURRENTLY refuses to be part of several.
        owner.batch_execute(statement).await.unwrap();
    }
    let [toml] = &blocks(&page, "toml")[..] else { panic!("a page has one configuration") };
    assert!(toml.contains(host), "{toml}");
    let toml = connected(toml, &database.url("relay")).replace(host, &provider.url());
    let toml = format!("{toml}\n[admin]\nlisten = \"127.0.0.1:0\"\n");

    let (code, out, log) = outbox_relay(&toml, &["check", "-o", "json"]).await;
    assert_eq!(code, Some(0), "{out}{log}");
    let index = json(&out)["findings"].as_array().unwrap().iter().find(|one| one["code"] == "index").cloned();
    assert_eq!(index.expect("a finding about the index")["level"], Value::from("ok"), "{out}");
    let (code, _, log) = outbox_relay(&toml, &["run", "--once"]).await;
    assert_eq!(code, Some(0), "{log}");
    let received = provider.received().into_iter().map(|one| one.request);
    received
        .map(|request| {
            assert!(request.key.len() > request.row().len(), "{}: no due instant", request.key);
            let row = request.row().to_owned();
            (request.method, request.path, row)
        })
        .collect()
}

// Guarantee: pending.guides
#[tokio::test(flavor = "multi_thread")]
async fn the_page_on_reminders_can_be_followed_word_for_word() {
    let provider = Provider::start(|_| Answer::Accept).await.unwrap();
    let received = follow("reminders", REMINDER_TABLE, &provider, "https://notify.internal").await;
    let expected = ["PUT", "/notifications/delayed-7", "reminders/blue/7"].map(str::to_owned);
    assert_eq!(received, [expected.into()]);
}

// Guarantee: pending.guides
#[tokio::test(flavor = "multi_thread")]
async fn the_page_on_welcome_messages_can_be_followed_word_for_word() {
    let provider = Provider::start(|_| Answer::Accept).await.unwrap();
    let received = follow("welcome", USERS, &provider, "https://mail.internal").await;
    let expected = ["POST", "/welcome", "welcome/1"].map(str::to_owned);
    assert_eq!(received, [expected.into()]);
}
