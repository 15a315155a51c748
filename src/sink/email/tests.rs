//! Against scripted servers on the loopback interface, most of them faulty in one way.

use tokio::net::TcpListener;

use super::*;
use crate::batch::Batch;
use crate::position::Timestamp;
use crate::sink::{Class, Flow, Mode, Published};

mod out_of_step;
mod server;
use server::{CLOSE, HANG, RESET, SLOW, Script, server};

fn config(port: u16) -> Config {
    let texts = Texts { subject: "Hello".to_owned(), text: Some(Source::Inline("{{ name }}".to_owned())), html: None };
    let server = Server {
        host: "127.0.0.1".to_owned(),
        port,
        security: Security::None,
        credentials: Some(("relay".to_owned(), Secret::Value("hunter2".to_owned().into()))),
        ca_file: None,
        hello_name: None,
    };
    Config {
        server,
        timeout: Duration::from_secs(10),
        rate_per_second: None,
        key_memory: None,
        connections: 1,
        from: Mailbox::parse("shop@example.com").expect("a mailbox"),
        reply_to: None,
        to: "ann@example.com".to_owned(),
        template: None,
        message_id_domain: "example.com".to_owned(),
        templates: BTreeMap::from([("hello".to_owned(), texts)]),
    }
}

fn rows(ids: &[&str]) -> Batch {
    let mut batch = Batch::new(1);
    for id in ids {
        batch.push(Timestamp::from_pg_micros(1), id, [Some(&b"Ann"[..])]);
    }
    batch
}

fn sink(config: &Config) -> EmailSink {
    EmailSink::new(config, "relay").expect("compiles")
}

async fn publish(sink: &EmailSink, ids: &[&str]) -> Published {
    let mut publication = sink.begin(Mode::default());
    publication.push(&rows(ids)).await;
    publication.finish()
}

/// Delivers what was pinned for the message `7`.
async fn deliver(sink: &EmailSink, pinned: &[u8], patience: Duration) -> Result<Receipt, Failure> {
    sink.deliver("7", pinned, patience, &mut Step::default()).await
}

async fn failure(script: Script) -> (Class, bool, String) {
    failure_within(Duration::from_secs(10), script).await
}

async fn failure_within(timeout: Duration, script: Script) -> (Class, bool, String) {
    let (port, _) = server(script).await;
    let failure = publish(&sink(&Config { timeout, ..config(port) }), &["1"]).await.stopped.expect("it has failed");
    assert!(!format!("{failure:?}").contains("hunter2") && !failure.message.contains("ann@"), "{failure:?}");
    (failure.class, failure.ambiguous, failure.code)
}

#[tokio::test]
async fn mails_go_one_after_the_other_through_one_dialogue() {
    let (port, seen) = server(|_| None).await;
    let sink = sink(&config(port));
    assert_eq!(publish(&sink, &["1", "2"]).await, Published { acknowledged: 2, stopped: None, suspects: 1 });
    assert_eq!(publish(&sink, &["3"]).await.acknowledged, 1);
    assert_eq!((seen.connections(), seen.count("AUTH"), seen.count("RSET")), (1, 1, 2));
    let lines = seen.lines();
    assert_eq!(lines[1], "EHLO [127.0.0.1]");
    assert!(lines[3].starts_with("MAIL FROM:<shop@example.com> SIZE="), "{lines:?}");
    assert_eq!(lines[4..7], ["RCPT TO:<ann@example.com>", "DATA", "."]);
}

// Guarantee: failures.smtp-codes
#[tokio::test]
async fn a_refusal_means_what_its_line_makes_of_it() {
    use Class::{Fatal, Poison, Retry};
    let script: [(Script, Class, &str); 12] = [
        (|line| (line.is_empty()).then_some("554 not today"), Retry, "smtp_greeting_554"),
        (|line| (line.starts_with("EHLO")).then_some("502 what"), Retry, "smtp_ehlo_502"),
        (|line| (line.starts_with("AUTH")).then_some("454 4.7.0 later"), Retry, "smtp_auth_454"),
        (|line| (line.starts_with("AUTH")).then_some("535 5.7.8 hunter2"), Fatal, "smtp_auth_535"),
        (|line| (line.starts_with("MAIL")).then_some("451 4.3.0 later"), Retry, "smtp_mail_451"),
        (|line| (line.starts_with("MAIL")).then_some("550 5.7.1 not you"), Fatal, "smtp_mail_550"),
        (|line| (line.starts_with("RCPT")).then_some("450 4.2.1 later"), Retry, "smtp_rcpt_450"),
        (|line| (line.starts_with("RCPT")).then_some("550 5.1.1 <ann@example.com> who"), Poison, "smtp_rcpt_550"),
        (|line| (line == "DATA").then_some("451 4.3.0 later"), Retry, "smtp_data_451"),
        (|line| (line == "DATA").then_some("554 5.5.1 no"), Poison, "smtp_data_554"),
        (|line| (line == ".").then_some("452 4.2.2 full"), Retry, "smtp_content_452"),
        (|line| (line == ".").then_some("554 5.6.0 spam"), Poison, "smtp_content_554"),
    ];
    for (script, class, code) in script {
        assert_eq!(failure(script).await, (class, false, code.to_owned()));
    }
}

// Guarantee: failures.smtp-codes
#[tokio::test]
async fn silence_and_a_cut_are_unknown_behind_the_last_line_only() {
    let before: [(Script, &str); 11] = [
        (|line| (line.is_empty()).then_some(HANG), "smtp_timeout"),
        (|line| (line.starts_with("EHLO")).then_some(HANG), "smtp_timeout"),
        (|line| (line.starts_with("AUTH")).then_some(HANG), "smtp_timeout"),
        (|line| (line.starts_with("MAIL")).then_some(HANG), "smtp_timeout"),
        (|line| (line.starts_with("RCPT")).then_some(HANG), "smtp_timeout"),
        (|line| (line == "DATA").then_some(HANG), "smtp_timeout"),
        (|line| (line.is_empty()).then_some(CLOSE), "smtp_broken"),
        (|line| (line.starts_with("MAIL")).then_some(RESET), "smtp_broken"),
        (|line| (line == "DATA").then_some(CLOSE), "smtp_broken"),
        (|line| (line == "DATA").then_some("250 nonsense"), "smtp_broken"),
        (|line| (line == "DATA").then_some("354 go ahead\r\n250 2.0.0 unasked"), "smtp_broken"),
    ];
    for (script, code) in before {
        let timeout = if code == "smtp_timeout" { Duration::from_millis(300) } else { Duration::from_secs(10) };
        assert_eq!(failure_within(timeout, script).await, (Class::Retry, false, code.to_owned()));
    }
    let behind: [(Script, &str); 4] = [
        (|line| (line == ".").then_some(HANG), "smtp_timeout_after_data"),
        (|line| (line == ".").then_some(CLOSE), "smtp_broken_after_data"),
        (|line| (line == ".").then_some(RESET), "smtp_broken_after_data"),
        (|line| (line == ".").then_some("nonsense"), "smtp_broken_after_data"),
    ];
    for (script, code) in behind {
        // Long enough that the last line is reached on a busy machine.
        assert_eq!(failure_within(Duration::from_secs(3), script).await, (Class::Retry, true, code.to_owned()));
    }
}

#[tokio::test]
async fn a_server_that_nobody_listens_at_has_got_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let port = listener.local_addr().expect("bound").port();
    drop(listener);
    let failure = publish(&sink(&config(port)), &["1"]).await.stopped.expect("it has failed");
    assert_eq!((failure.class, failure.ambiguous, failure.code.as_str()), (Class::Retry, false, "smtp_connect"));
    assert!(failure.message.contains("refused") && failure.is_outage(), "{failure:?}");
}

#[tokio::test]
async fn a_dialogue_that_the_server_has_left_is_found_out_before_the_next_mail() {
    // It answers a mail and is gone, or falls silent, at the next line.
    for end in [(|line| (line == "RSET").then_some(CLOSE)) as Script, |line| (line == "RSET").then_some(HANG)] {
        let (port, seen) = server(end).await;
        let sink = sink(&config(port));
        for id in ["1", "2"] {
            assert_eq!(publish(&sink, &[id]).await, Published { acknowledged: 1, stopped: None, suspects: 1 });
        }
        assert_eq!((seen.connections(), seen.count("MAIL")), (2, 2));
    }
}

#[tokio::test]
async fn a_mail_above_the_servers_limit_is_poison_before_it_is_begun() {
    let (port, seen) =
        server(|line| line.starts_with("EHLO").then_some("250-x\r\n250-SIZE 100\r\n250 AUTH PLAIN")).await;
    let failure = publish(&sink(&config(port)), &["1"]).await.stopped.expect("too large");
    assert_eq!((failure.class, failure.ambiguous, failure.code.as_str()), (Class::Poison, false, "message_too_large"));
    assert_eq!(seen.count("MAIL"), 0);
}

#[tokio::test]
async fn a_way_to_sign_in_is_found_and_none_is_fatal() {
    let (port, seen) = server(|line| match line {
        line if line.starts_with("EHLO") => Some("250-x\r\n250 AUTH=LOGIN CRAM-MD5"),
        "AUTH LOGIN" => Some("334 VXNlcm5hbWU6"),
        "cmVsYXk=" => Some("334 UGFzc3dvcmQ6"),
        "aHVudGVyMg==" => Some("235 yes"),
        _ => None,
    })
    .await;
    assert_eq!(publish(&sink(&config(port)), &["1"]).await.acknowledged, 1);
    assert_eq!(seen.count("AUTH"), 1);
    let none = failure(|line| line.starts_with("EHLO").then_some("250-x\r\n250 AUTH GSSAPI")).await;
    assert_eq!(none, (Class::Fatal, false, "smtp_no_auth".to_owned()));
}

#[tokio::test]
async fn a_publication_given_up_says_whether_the_last_line_was_begun() {
    for (script, is_sent) in
        [((|line| (line == "DATA").then_some(HANG)) as Script, false), (|line| (line == ".").then_some(HANG), true)]
    {
        let (port, seen) = server(script).await;
        let sink = sink(&Config { timeout: Duration::from_secs(60), ..config(port) });
        let mut publication = sink.begin(Mode::default());
        let batch = rows(&["1"]);
        let waited_for = if is_sent { "." } else { "DATA" };
        let reached = async {
            while seen.count(waited_for) == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::select! {
            _ = publication.push(&batch) => panic!("it hangs"),
            () = reached => {}
        }
        assert_eq!(publication.push(&batch).await, Flow::Stop, "an unknown outcome is never passed over");
        let stopped = Some(Failure { ambiguous: is_sent, ..Failure::deadline() });
        assert_eq!(publication.finish(), Published { acknowledged: 0, stopped, suspects: 1 });
    }
}

#[tokio::test]
async fn what_is_pinned_is_delivered_as_it_is_with_a_receipt() {
    let (port, seen) = server(|line| (line == ".").then_some("250-2.0.0 fine\r\n250 2.0.0 queued as 42")).await;
    let sink = sink(&config(port));
    let pinned = sink.pin(&rows(&["7"]).message(0)).expect("a mail");
    let receipt = deliver(&sink, &pinned, Duration::from_secs(5)).await.expect("taken");
    let expected = Receipt { id: Some("<relay/7@example.com>".to_owned()), reply: "250 2.0.0 queued as 42".to_owned() };
    assert_eq!(receipt, expected);
    let other =
        sink.deliver("8", &pinned, Duration::from_secs(5), &mut Step::default()).await.expect_err("another message's");
    assert_eq!((other.class, other.code.as_str(), seen.count("MAIL")), (Class::Poison, "pinned_mail", 1));
}

#[tokio::test]
async fn no_more_dialogues_than_allowed_are_open_at_a_time() {
    let (port, seen) = server(|_| None).await;
    let sink = sink(&Config { connections: 2, ..config(port) });
    let pinned = sink.pin(&rows(&["7"]).message(0)).expect("a mail");
    let sent = futures_util::future::join_all((0..20).map(|_| deliver(&sink, &pinned, Duration::from_secs(60)))).await;
    assert!(sent.iter().all(Result::is_ok), "{sent:?}");
    assert_eq!((seen.count("MAIL"), seen.connections()), (20, 2));
}

// Guarantee: failures.slow-smtp
#[tokio::test]
async fn waiting_for_a_connection_does_not_use_up_the_time_of_a_mail() {
    let (port, seen) = server(|line| (line == ".").then_some(SLOW)).await;
    let sink = sink(&Config { connections: 2, timeout: Duration::from_secs(5), ..config(port) });
    let pinned = sink.pin(&rows(&["7"]).message(0)).expect("a mail");
    // Eight seconds of the server's, two at a time.
    let sent = futures_util::future::join_all((0..20).map(|_| deliver(&sink, &pinned, Duration::from_secs(60)))).await;
    assert!(sent.iter().all(Result::is_ok), "{sent:?}");
    assert_eq!((seen.count("MAIL"), seen.connections()), (20, 2));
}

// Guarantee: failures.slow-smtp
#[tokio::test]
async fn a_mail_without_a_connection_is_not_begun_when_too_little_time_is_left() {
    let (port, seen) = server(|line| (line == ".").then_some(HANG)).await;
    let sink = sink(&config(port));
    let pinned = sink.pin(&rows(&["7"]).message(0)).expect("a mail");
    let begun = async {
        while seen.count(".") == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        deliver(&sink, &pinned, Duration::from_secs(10)).await
    };
    let failure = tokio::select! {
        sent = deliver(&sink, &pinned, Duration::from_secs(10)) => panic!("it hangs: {sent:?}"),
        second = begun => second.expect_err("the one connection is in use"),
    };
    assert_eq!((failure.class, failure.ambiguous, failure.code.as_str()), (Class::Retry, false, "smtp_busy"));
    assert!(!failure.is_outage() && seen.count("MAIL") == 1, "{failure:?}");
}

#[tokio::test]
async fn the_rate_ends_a_turn_without_a_failure() {
    let (port, seen) = server(|_| None).await;
    let sink = sink(&Config { rate_per_second: Some(0.5), ..config(port) });
    assert_eq!(sink.min_interval(), Some(Duration::from_secs(2)));
    assert_eq!(publish(&sink, &["1", "2"]).await, Published { acknowledged: 1, stopped: None, suspects: 1 });
    assert_eq!(seen.count("MAIL"), 1);
}
