//! Against real listeners on the loopback interface that count connections: a blocked one must see none.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolving};
use tempfile::TempPath;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::batch::Batch;
use crate::position::Timestamp;
use crate::sink::{Failure, Mode, Published};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A listener that counts connections, keeps what it was asked, answers once with `answer`, and closes.
struct Door {
    port: u16,
    connections: Arc<AtomicUsize>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Door {
    async fn open(address: &str, port: u16, answer: &'static str) -> io::Result<Self> {
        let listener = TcpListener::bind((address, port)).await?;
        let port = listener.local_addr()?.port();
        let (connections, asked) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let (count, seen) = (Arc::clone(&connections), Arc::clone(&asked));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                count.fetch_add(1, SeqCst);
                let mut text = Vec::new();
                while !text.ends_with(b"}") && stream.read_buf(&mut text).await.is_ok_and(|read| read > 0) {}
                seen.lock().expect("not poisoned").push(String::from_utf8_lossy(&text).into_owned());
                let answer = format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        Ok(Self { port, connections, asked })
    }

    fn connections(&self) -> usize {
        self.connections.load(SeqCst)
    }
}

/// The same port at several addresses.
async fn doors<const N: usize>(addresses: [&str; N], answer: &'static str) -> [Door; N] {
    for _ in 0..100 {
        let mut open = Vec::new();
        let mut port = 0;
        for address in addresses {
            let Ok(door) = Door::open(address, port, answer).await else { break };
            port = door.port;
            open.push(door);
        }
        if let Ok(doors) = open.try_into() {
            return doors;
        }
    }
    panic!("no port is free at {addresses:?}")
}

/// Answers each question with the next of its answers.
struct Scripted(Mutex<VecDeque<io::Result<Vec<IpAddr>>>>);

impl Resolve for Scripted {
    fn resolve(&self, _: Name) -> Resolving {
        let next = self.0.lock().expect("not poisoned").pop_front().expect("nobody asks twice for one connection");
        Box::pin(async move {
            let found: Vec<SocketAddr> = next?.into_iter().map(|address| (address, 0).into()).collect();
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

fn scripted<const N: usize>(answers: [io::Result<&[&str]>; N]) -> Arc<dyn Resolve> {
    let parse = |addresses: &[&str]| addresses.iter().map(|text| text.parse().expect("an address")).collect();
    Arc::new(Scripted(Mutex::new(answers.into_iter().map(|answer| answer.map(parse)).collect())))
}

fn config(url: String, allow: &[&str]) -> (Config, TempPath) {
    let file = tempfile::NamedTempFile::new().expect("a file").into_temp_path();
    std::fs::write(&file, SECRET).expect("written");
    let request = http::Config {
        method: "POST".into(),
        url,
        headers: BTreeMap::new(),
        body: http::Body::Row,
        timeout: Duration::from_secs(3),
        rate_per_second: None,
        once: crate::sink::http::once::Config::default(),
        access: crate::sink::http::access::Config::default(),
    };
    let allow = allow.iter().map(|range| range.parse().expect("a range")).collect();
    (Config { request, secret_files: vec![file.to_path_buf()], body_limit: 1 << 20, allow }, file)
}

async fn publish(sink: &HttpSink, ids: &[&str]) -> Published {
    let mut publication = sink.begin(Mode::default()).expect("begins");
    let mut batch = Batch::new(1);
    for id in ids {
        batch.push(Timestamp::from_pg_micros(1), id, [Some(&b"{\"secret\":\"hunter2\"}"[..])]);
    }
    publication.push(&batch).await;
    publication.finish()
}

async fn send(url: String, allow: &[&str], names: Arc<dyn Resolve>, ids: &[&str]) -> Published {
    let (config, _file) = config(url, allow);
    publish(&sink_with(&config, "relay", names).expect("compiles"), ids).await
}

#[track_caller]
fn refused(published: &Published) -> &Failure {
    let failure = published.stopped.as_ref().expect("it has failed");
    assert_eq!((failure.class, failure.ambiguous, failure.code.as_str()), (Class::Fatal, false, "address_blocked"));
    assert!(failure.hint.contains("allow = ") && failure.hint.contains("cursor resume"), "{failure:?}");
    failure
}

/// This machine, as somebody may write it who means to be taken for somebody else.
const SPELLINGS: [&str; 21] = [
    "127.0.0.1",
    "127.0.0.1.",
    "127.1",
    "127.0.1",
    "2130706433",
    "0x7f000001",
    "0x7F.0x0.0x0.0x1",
    "0x7f.1",
    "0177.0.0.1",
    "017700000001",
    "127.0.0.0x1",
    "%31%32%37.0.0.1",
    "１２７.０.０.１",
    "127。0。0。1",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[0:0:0:0:0:ffff:7f00:0001]",
    "localhost",
    "LOCALHOST",
];

// Guarantee: secrets.webhook-addresses
#[tokio::test]
async fn no_spelling_of_this_machine_is_connected_to_unless_it_is_allowed() {
    let doors = doors(["127.0.0.1", "::1"], "200 OK").await;
    let count = || doors.iter().map(Door::connections).sum::<usize>();
    for host in SPELLINGS.into_iter().chain(["0", "0.0.0.0", "[::]", "[::127.0.0.1]", "[::ffff:0.0.0.0]"]) {
        let url = format!("http://{host}:{}/in", doors[0].port);
        let published = send(url, &[], Arc::new(SystemNames), &["1"]).await;
        let message = &refused(&published).message;
        assert!(message.contains("loopback") || message.contains("unspecified") || message.contains("compatible"));
        assert_eq!((published.acknowledged, count()), (0, 0), "{host}");
    }
    for (sent, host) in SPELLINGS.into_iter().enumerate() {
        let url = format!("http://{host}:{}/in", doors[0].port);
        let published = send(url, &["127.0.0.0/8", "::1/128"], Arc::new(SystemNames), &["1"]).await;
        assert_eq!((published.stopped, count()), (None, sent + 1), "{host}: the listener would have seen it");
    }
}

// Guarantee: secrets.webhook-addresses
#[tokio::test]
async fn a_name_that_means_another_address_the_next_time_is_not_followed_there() {
    let [open, shut] = doors(["127.0.0.2", "127.0.0.1"], "200 OK").await;
    let names = scripted([Ok(&["127.0.0.2"]), Ok(&["127.0.0.1"])]);
    let url = format!("http://rebinding.test:{}/in", open.port);
    let published = send(url, &["127.0.0.2/32"], names, &["1", "2"]).await;
    assert_eq!(published.acknowledged, 1);
    assert!(refused(&published).message.contains("its address 127.0.0.1 is blocked (loopback)"));
    assert_eq!((open.connections(), shut.connections()), (1, 0));
}

#[tokio::test]
async fn of_a_names_addresses_only_those_that_are_open_are_tried() {
    let [open, shut, mapped] = doors(["127.0.0.2", "127.0.0.1", "::1"], "200 OK").await;
    let both: &[&str] = &["127.0.0.1", "::1", "127.0.0.2", "::ffff:127.0.0.1"];
    let url = format!("http://both.test:{}/in", open.port);
    assert_eq!(send(url, &["127.0.0.2/32"], scripted([Ok(both)]), &["1"]).await.stopped, None);
    // Nobody listens where it may go: the others are no way out.
    let url = format!("http://both.test:{}/in", shut.port);
    let nowhere = send(url, &["127.0.0.3/32"], scripted([Ok(&["127.0.0.1", "127.0.0.3", "::1"])]), &["1"]).await;
    let failure = nowhere.stopped.expect("it has failed");
    assert_eq!((failure.class, failure.code.as_str()), (Class::Retry, "connect"));
    assert_eq!((open.connections(), shut.connections(), mapped.connections()), (1, 0, 0));
}

#[tokio::test]
async fn a_resolver_that_fails_opens_nothing() {
    let [shut] = doors(["127.0.0.1"], "200 OK").await;
    for (answer, told) in [(Err(io::Error::other("no resolver")), "no resolver"), (Ok(&[][..]), "has no address")] {
        let url = format!("http://nowhere.test:{}/in", shut.port);
        let failure = send(url, &[], scripted([answer]), &["1"]).await.stopped.expect("it has failed");
        assert_eq!((failure.class, failure.ambiguous, failure.code.as_str()), (Class::Retry, false, "connect"));
        assert!(failure.message.contains(told), "{failure:?}");
    }
    assert_eq!(shut.connections(), 0);
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_leads_nowhere() {
    let [shut] = doors(["127.0.0.1"], "200 OK").await;
    for status in [301, 302, 303, 307, 308] {
        let answer = format!("{status} Elsewhere\r\nlocation: http://127.0.0.1:{}/in", shut.port);
        let [open] = doors(["127.0.0.2"], answer.leak()).await;
        let url = format!("http://127.0.0.2:{}/in", open.port);
        // Both are allowed: it is not the filter that keeps the request from being repeated there.
        let published = send(url, &["127.0.0.0/8"], Arc::new(SystemNames), &["1"]).await;
        let failure = published.stopped.expect("it has failed");
        assert_eq!((failure.class, failure.code), (Class::Fatal, format!("http_{status}")));
        assert_eq!((open.connections(), shut.connections()), (1, 0));
    }
}

#[tokio::test]
async fn an_answer_of_410_is_fatal_and_names_the_way_on() {
    let [door] = doors(["127.0.0.1"], "410 Gone").await;
    let url = format!("http://127.0.0.1:{}/in", door.port);
    let failure =
        send(url, &["127.0.0.1/32"], Arc::new(SystemNames), &["1", "2"]).await.stopped.expect("it has failed");
    assert_eq!((failure.class, failure.ambiguous, failure.code.as_str()), (Class::Fatal, false, "webhook_gone"));
    assert!(failure.hint.contains("cursor resume"), "{failure:?}");
    assert_eq!(door.connections(), 1);
}

#[tokio::test]
async fn a_body_above_the_limit_is_poison_and_not_sent() {
    let [door] = doors(["127.0.0.1"], "200 OK").await;
    let (config, _file) = config(format!("http://127.0.0.1:{}/in", door.port), &["127.0.0.1/32"]);
    let size = "{\"secret\":\"hunter2\"}".len();
    let sink = sink(&Config { body_limit: size - 1, ..config.clone() }, "relay").expect("compiles");
    let failure = publish(&sink, &["1"]).await.stopped.expect("it has failed");
    assert_eq!((failure.class, failure.code.as_str()), (Class::Poison, "message_too_large"));
    assert_eq!(failure.message, format!("The body has {size} bytes, body_limit allows {}", size - 1));
    assert_eq!(door.connections(), 0);
    let sink = super::sink(&Config { body_limit: size, ..config }, "relay").expect("compiles");
    assert_eq!(publish(&sink, &["1"]).await.stopped, None);
}

#[tokio::test]
async fn secrets_are_read_for_each_publication_and_each_attempt_keeps_its_id() {
    let [door] = doors(["127.0.0.1"], "503 Busy").await;
    let (config, file) = config(format!("http://127.0.0.1:{}/in", door.port), &["127.0.0.1/32"]);
    let sink = sink(&config, "relay.v2").expect("compiles");
    let other = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    for secret in [SECRET, other] {
        std::fs::write(&file, secret).expect("written");
        publish(&sink, &["1"]).await;
        let request = door.asked.lock().expect("not poisoned").last().expect("asked").clone();
        let (head, body) = request.split_once("\r\n\r\n").expect("a request");
        let mut headers = reqwest::header::HeaderMap::new();
        for (name, value) in head.lines().filter_map(|line| line.split_once(": ")) {
            headers
                .insert(reqwest::header::HeaderName::try_from(name).expect("a name"), value.parse().expect("a value"));
        }
        assert_eq!(
            (&headers["webhook-id"], &headers["idempotency-key"]),
            (&"relay%2Ev2/1".parse().expect("a value"), &"relay.v2/1".parse().expect("a value"))
        );
        standardwebhooks::Webhook::new(secret).expect("a secret").verify(body.as_bytes(), &headers).expect("verifies");
    }
    std::fs::write(&file, "hunter2").expect("written");
    let failure = sink.begin(Mode::default()).expect_err("no secret");
    assert_eq!((failure.class, failure.code.as_str()), (Class::Fatal, "secret_unreadable"));
    assert!(!failure.message.contains("hunter2") && failure.message.contains("whsec_"), "{failure:?}");
}
