//! Email by the program itself, to a real mail server: what it received, through which connection, and how often.

use outbox_testkit::smtp::{Behaviour, Options, Security, SmtpServer};
use rustix::process::Signal;

use crate::support::outside::{fixed, halted, json, lines, standing};
use crate::support::post::{PASSWORD, Stage, USER};
use crate::support::tls::{SHOWINGS, Showing};
use crate::support::{PATIENCE, Process, eventually, outbox_relay};

mod due;
mod outcomes;

/// The Message-IDs of what the server has, in order.
fn ids(server: &SmtpServer) -> Vec<String> {
    server.received().iter().flat_map(|mail| mail.header("message-id")).map(str::to_owned).collect()
}

/// The Message-IDs of these rows of the relay `mail`.
fn of_rows(rows: impl IntoIterator<Item = u32>) -> Vec<String> {
    rows.into_iter().map(|row| format!("<mail/{row}@example.com>")).collect()
}

// Guarantee: secrets.email-intact
#[tokio::test(flavor = "multi_thread")]
async fn each_row_is_one_mail_with_both_parts_through_starttls_and_tls_alike() {
    for (security, word) in [(Security::StartTls, "starttls"), (Security::Tls, "tls")] {
        let stage = Stage::start().await;
        let server = stage.server(security, Showing::Right).await;
        stage.add("Änn O'Hara", "ann@example.com").await;
        stage.add("Bob", "b.o+b@bücher.example").await;
        let text = stage.toml(&stage.relay("mail", server.port(), word, "hello_name = \"relay.example.com\""));
        let process = Process::spawn_with(&text, &["run"], &[("RUST_LOG", "trace".to_owned())]);
        eventually(PATIENCE * 2, || async { server.received().len() == 2 }).await;
        assert_eq!(ids(&server), of_rows([1, 2]));
        let [ann, bob] = &server.received()[..] else { panic!("two mails") };
        assert_eq!((ann.from.as_str(), &ann.to[..]), ("shop@example.com", &["ann@example.com".to_owned()][..]));
        assert_eq!(bob.to, ["b.o+b@xn--bcher-kva.example"]);
        assert!(ann.encrypted && ann.user.as_deref() == Some(USER) && ann.hello == "relay.example.com");
        assert_eq!(ann.header("from"), ["The Shöp <shop@example.com>"]);
        assert_eq!(ann.header("to"), ["Änn O'Hara <ann@example.com>"]);
        assert_eq!(ann.header("subject"), ["Welcome, Änn O'Hara"]);
        assert_eq!(ann.header("auto-submitted"), ["auto-generated"]);
        assert_eq!((ann.header("date").len(), ann.header("bcc").len()), (1, 0));
        assert_eq!(ann.kind, "multipart/alternative");
        let parts: Vec<(&str, &str)> = ann.parts.iter().map(|(kind, text)| (kind.as_str(), text.trim_end())).collect();
        let plain = "Dear Änn O'Hara,\r\nyour number is 1.\r\n.";
        let html = "<p title=\"Änn O&#x27;Hara\">Dear <b>Änn O&#x27;Hara</b></p>";
        assert_eq!(parts, [("text/plain", plain), ("text/html", html)]);
        assert_eq!(server.connections(), 1, "the dialogue is kept");

        let log = process.log();
        assert!(log.contains("TRACE"), "the log is as loud as can be");
        let (code, shown, _) = outbox_relay(&text, &["config", "show", "--redacted"]).await;
        assert!(code == Some(0) && shown.contains("password_file = "), "{shown}");
        for text in [log, shown] {
            assert!(!text.contains(PASSWORD) && !text.contains("Y29ycmVjdCBob3JzZ"), "a secret is shown");
        }
    }
}

// Guarantee: secrets.tls
#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_the_right_certificate_gets_the_mail_and_every_other_no_password() {
    let stage = Stage::start().await;
    stage.add("Ann", "ann@example.com").await;
    let mut servers = Vec::new();
    let mut relays = String::new();
    for showing in SHOWINGS {
        for (security, word) in [(Security::StartTls, "starttls"), (Security::Tls, "tls")] {
            let name = format!("{showing:?}-{word}").to_ascii_lowercase();
            let server = stage.server(security, showing).await;
            relays.push_str(&stage.relay(&name, server.port(), word, ""));
            servers.push((name, showing, server));
        }
    }
    // Without ca_file the system's authorities count, and they do not know this one.
    let stranger = stage.server(Security::Tls, Showing::Right).await;
    let keys = stage.trust().lines().filter(|line| !line.starts_with("ca_file")).collect::<Vec<_>>().join("\n");
    relays.push_str(&stage.relay_with("stranger", stranger.port(), &format!("security = \"tls\"\n{keys}")));
    servers.push(("stranger".to_owned(), Showing::SelfSigned, stranger));
    let _process = Process::spawn(&stage.toml(&relays), &["run"]);
    for (name, showing, server) in &servers {
        if *showing == Showing::Right {
            eventually(PATIENCE * 3, || async { server.received().len() == 1 }).await;
            continue;
        }
        let failed = || async { standing(&stage.owner, name).await.is_some_and(|(.., error)| !error.is_null()) };
        eventually(PATIENCE * 3, failed).await;
        let (state, _, _, error) = standing(&stage.owner, name).await.unwrap();
        assert_eq!((state.as_str(), &error["class"]), ("backing_off", &"retry".into()), "{name}: {error}");
        assert!(error["message"].as_str().unwrap().contains("certificate"), "{name}: {error}");
        assert!(server.received().is_empty(), "{name}");
    }
}

// Guarantee: secrets.email-password
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_password_halts_and_a_new_one_needs_no_restart() {
    let stage = Stage::start().await;
    let server = stage.server(Security::StartTls, Showing::Right).await;
    stage.password("wrong");
    stage.add("Ann", "ann@example.com").await;
    let text = stage.toml(&stage.relay("mail", server.port(), "starttls", ""));
    let process = Process::spawn(&text, &["run"]);
    let (_, error) = halted(&stage.owner, "mail").await;
    assert_eq!((&error["class"], &error["code"]), (&"fatal".into(), &"smtp_auth_535".into()), "{error}");
    assert!(server.received().is_empty() && !process.log().contains("wrong\""));
    stage.password(PASSWORD);
    let (code, _, log) = outbox_relay(&text, &["cursor", "resume", "mail"]).await;
    assert_eq!(code, Some(0), "{log}");
    eventually(PATIENCE * 2, || async { ids(&server) == of_rows([1]) }).await;
    fixed(&stage.owner, "mail").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_the_server_has_closed_costs_no_mail() {
    let stage = Stage::start().await;
    let server = stage.server(Security::Tls, Showing::Right).await;
    let text = stage.toml(&stage.relay("mail", server.port(), "tls", ""));
    let process = Process::spawn(&text, &["run"]);
    for row in 1..=3 {
        stage.add("Ann", "ann@example.com").await;
        eventually(PATIENCE * 2, || async { ids(&server) == of_rows(1..=row) }).await;
        server.close_connections().await.unwrap();
    }
    assert_eq!(server.connections(), 3);
    assert!(!lines(&process).iter().any(|line| line["level"] == "WARN" && line["message"] == "row not published"));
}

// Guarantee: failures.message-id
#[tokio::test(flavor = "multi_thread")]
async fn a_mail_that_the_server_has_and_nobody_heard_of_comes_again_with_the_same_id() {
    for behaviour in [Behaviour::Hang, Behaviour::Reset] {
        let stage = Stage::start().await;
        let server = stage.server(Security::StartTls, Showing::Right).await;
        server.behave(behaviour).await.unwrap();
        stage.add("Ann", "ann@example.com").await;
        stage.add("Bob", "bob@example.com").await;
        let text = stage.toml(&stage.relay("mail", server.port(), "starttls", ""));
        let _process = Process::spawn(&text, &["run"]);
        let code = || async { standing(&stage.owner, "mail").await.map(|(.., error)| error["code"].to_string()) };
        eventually(PATIENCE * 2, || async { code().await.is_some_and(|code| code.contains("_after_data")) }).await;
        server.behave(Behaviour::Accept).await.unwrap();
        eventually(PATIENCE * 2, || async { ids(&server).contains(&of_rows([2])[0]) }).await;
        let ids = ids(&server);
        let first = ids.iter().filter(|id| **id == of_rows([1])[0]).count();
        assert!(first >= 2 && ids.len() == first + 1, "the first again and again, then the second once: {ids:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn check_signs_in_and_sends_nothing() {
    let stage = Stage::start().await;
    let server = stage.server(Security::StartTls, Showing::Right).await;
    stage.add("Ann", "ann@example.com").await;
    let text = stage.toml(&stage.relay("mail", server.port(), "starttls", ""));
    let (code, out, log) = outbox_relay(&text, &["check", "-o", "json"]).await;
    assert_eq!(code, Some(0), "{out} {log}");
    let found =
        json(&out)["findings"].as_array().unwrap().iter().find(|found| found["code"] == "email").cloned().unwrap();
    assert_eq!(found["level"], "ok", "{found}");
    stage.password("wrong");
    let (code, out, _) = outbox_relay(&text, &["check", "-o", "json"]).await;
    let found =
        json(&out)["findings"].as_array().unwrap().iter().find(|found| found["code"] == "email_refused").cloned();
    assert!(code == Some(3) && found.unwrap()["message"].as_str().unwrap().contains("535"), "{out}");
    assert!(server.received().is_empty() && server.connections() == 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_waits_for_the_servers_answer() {
    let stage = Stage::start().await;
    let server = SmtpServer::start(&Options::default()).await.unwrap();
    stage.add("Ann", "ann@example.com").await;
    stage.add("Bob", "bob@example.com").await;
    let text = stage.toml(&stage.relay_with("mail", server.port(), "security = \"none\"\nrate_per_second = 0.1"));
    let mut process = Process::spawn(&text, &["run"]);
    eventually(PATIENCE * 2, || async { server.received().len() == 1 }).await;
    process.signal(Signal::TERM);
    assert_eq!(process.wait().await, Some(0));
    let _again = Process::spawn(&text.replace("rate_per_second = 0.1", ""), &["run"]);
    eventually(PATIENCE * 2, || async { server.received().len() == 2 }).await;
    assert_eq!(ids(&server), of_rows([1, 2]), "each once");
}
