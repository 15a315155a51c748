//! What the server's refusals make of a row.

use outbox_testkit::smtp::{Behaviour, Options, SmtpServer};
use serde_json::Value;

use super::{ids, of_rows};
use crate::support::outside::{halted, standing};
use crate::support::post::Stage;
use crate::support::{PATIENCE, Process, eventually, outbox_relay};

/// A relay to a server on this machine, and what it has halted at: the row, its class and code.
async fn poisoned(stage: &Stage, server: &SmtpServer) -> (Option<String>, Value) {
    let text = stage.toml(&stage.relay_with("mail", server.port(), "security = \"none\""));
    let _process = Process::spawn(&text, &["run"]);
    halted(&stage.owner, "mail").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_the_server_refuses_is_poison_and_its_address_is_not_told() {
    let (stage, server) = (Stage::start().await, SmtpServer::start(&Options::default()).await.unwrap());
    server.behave(Behaviour::RefuseReceiver("550 5.1.1 <ann@example.com> is nobody here")).await.unwrap();
    stage.add("Ann", "ann@example.com").await;
    let (id, error) = poisoned(&stage, &server).await;
    assert_eq!(
        (id.as_deref(), &error["class"], &error["code"]),
        (Some("1"), &"poison".into(), &"smtp_rcpt_550".into())
    );
    assert!(error["message"].as_str().unwrap().contains("550 5.1.1"), "{error}");
    assert!(!error.to_string().contains("ann@"), "{error}");
}

// Guarantee: failures.smtp-relay
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_relay_halts_and_puts_no_row_aside() {
    let (stage, server) = (Stage::start().await, SmtpServer::start(&Options::default()).await.unwrap());
    server.behave(Behaviour::RefuseReceiver("554 5.7.1 <ann@example.com>: Relay access denied")).await.unwrap();
    stage.add("Ann", "ann@example.com").await;
    let relay = stage.relay_with("mail", server.port(), "security = \"none\"");
    let text = stage.toml(&relay.replace("start =", "on_poison = \"dead_letter\"\nstart ="));
    let _process = Process::spawn(&text, &["run"]);
    let (_, error) = halted(&stage.owner, "mail").await;
    assert_eq!((&error["class"], &error["code"]), (&"fatal".into(), &"smtp_rcpt_554".into()), "{error}");
    server.behave(Behaviour::Accept).await.unwrap();
    let (done, _, log) = outbox_relay(&text, &["cursor", "resume", "mail"]).await;
    assert_eq!(done, Some(0), "{log}");
    eventually(PATIENCE * 2, || async { ids(&server) == of_rows([1]) }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_that_the_server_refuses_is_poison_and_one_that_it_puts_off_is_tried_again() {
    let (stage, server) = (Stage::start().await, SmtpServer::start(&Options::default()).await.unwrap());
    server.behave(Behaviour::Refuse("451 4.3.0 try again later")).await.unwrap();
    stage.add("Ann", "ann@example.com").await;
    let text = stage.toml(&stage.relay_with("mail", server.port(), "security = \"none\""));
    let _process = Process::spawn(&text, &["run"]);
    let code = || async { standing(&stage.owner, "mail").await.map(|(.., error)| error["code"].clone()) };
    eventually(PATIENCE * 2, || async { code().await == Some("smtp_content_451".into()) }).await;
    server.behave(Behaviour::Refuse("554 5.6.0 spam")).await.unwrap();
    let (_, error) = halted(&stage.owner, "mail").await;
    assert_eq!((&error["class"], &error["code"]), (&"poison".into(), &"smtp_content_554".into()));
    server.behave(Behaviour::Accept).await.unwrap();
    let (done, _, log) = outbox_relay(&text, &["cursor", "resume", "mail"]).await;
    assert_eq!(done, Some(0), "{log}");
    eventually(PATIENCE * 2, || async { ids(&server) == of_rows([1]) }).await;
}

// Guarantee: secrets.email-injection
#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_row_is_poison_and_the_server_never_hears_of_it() {
    let names = ["Ann\r\nBcc: eve@example.com", "Ann, Eve", "Ann <eve@example.com>", "\u{202e}nnA"];
    let addresses = ["ann@example.com, eve@example.com", "ann@example.com>\r\nRCPT TO:<eve@example.com", "ann", ""];
    let rows = names.map(|name| (name, "ann@example.com")).into_iter().chain(addresses.map(|email| ("Ann", email)));
    for (name, email) in rows {
        let (stage, server) = (Stage::start().await, SmtpServer::start(&Options::default()).await.unwrap());
        stage.add("Good", "good@example.com").await;
        stage.add(name, email).await;
        let (id, error) = poisoned(&stage, &server).await;
        assert_eq!((id.as_deref(), &error["class"]), (Some("2"), &"poison".into()), "{name:?} {email:?}");
        assert_eq!(error["code"], "invalid_mailbox", "{name:?} {email:?}: {error}");
        assert!(!error.to_string().contains("eve"), "{error}");
        assert_eq!(ids(&server), of_rows([1]), "the row before it is sent");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_above_the_servers_size_is_poison_before_it_is_sent() {
    let stage = Stage::start().await;
    let server = SmtpServer::start(&Options { size_limit: Some(20_000), ..Options::default() }).await.unwrap();
    stage.owner.execute("INSERT INTO people (name, email) VALUES ('Ann', 'ann@example.com')", &[]).await.unwrap();
    let templates = "\ntemplate = \"{{ template }}\"\n";
    let relay = stage.relay_with("mail", server.port(), &format!("security = \"none\"{templates}"))
        + "[relay.sink.email.templates.long]\nsubject = \"x\"\ntext = \"{% for i in '0123456789'|list %}{% for j in \
           '0123456789'|list %}{% for k in '0123456789'|list %}{{ name }} was here again.\\n{% endfor %}{% endfor %}\
           {% endfor %}\"\n";
    stage
        .owner
        .execute("INSERT INTO people (name, email, template) VALUES ('Bob', 'b@example.com', 'long')", &[])
        .await
        .unwrap();
    let _process = Process::spawn(&stage.toml(&relay), &["run"]);
    let (id, error) = halted(&stage.owner, "mail").await;
    assert_eq!((id.as_deref(), &error["code"]), (Some("2"), &"message_too_large".into()), "{error}");
    assert!(error["message"].as_str().unwrap().contains("takes 20000"), "{error}");
    assert_eq!(ids(&server), of_rows([1]));
}
