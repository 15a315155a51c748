//! SMS gateways whose answers are none, too many or too large.

use std::io;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::support::outside::standing;
use crate::support::{CLOCK, PATIENCE, Process, bookings, database, eventually, toml};

/// A gateway that gives each request the same bytes; and the ids that it was asked for, in order.
async fn gateway(answer: Vec<u8>) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (port, asked) = (listener.local_addr().unwrap().port(), Arc::new(Mutex::new(Vec::new())));
    let (answer, seen) = (Arc::new(answer), Arc::clone(&asked));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (answer, seen) = (Arc::clone(&answer), Arc::clone(&seen));
            tokio::spawn(async move { serve(stream, &answer, &seen).await });
        }
    });
    (port, asked)
}

async fn serve(mut stream: TcpStream, answer: &[u8], seen: &Mutex<Vec<String>>) -> io::Result<()> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            if stream.read_buf(&mut bytes).await? == 0 {
                return Ok(());
            }
            continue;
        };
        let header = |name: &str| {
            let mut lines = head.lines().filter_map(|line| line.split_once(": "));
            lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map_or("", |(_, value)| value).to_owned()
        };
        if body.len() < header("content-length").parse::<usize>().unwrap() {
            if stream.read_buf(&mut bytes).await? == 0 {
                return Ok(());
            }
            continue;
        }
        seen.lock().unwrap().push(header("idempotency-key").rsplit('/').next().unwrap().to_owned());
        bytes.clear();
        stream.write_all(answer).await?;
    }
}

fn response(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// Names of gateways, what they answer, and how the first message ends there; nothing, and all are taken.
fn kinds() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let deep = [&b"{\"code\":"[..], &b"[".repeat(30_000)[..]].concat();
    let headers = [&b"HTTP/1.1 201 Created\r\n"[..], &b"a: b\r\n".repeat(100_000)[..], &b"\r\n"[..]].concat();
    let created = response("201 Created", "", b"{}");
    vec![
        ("deep", response("400 Bad Request", "", &deep), "http_400"),
        ("wide", response("400 Bad Request", "", &b"x".repeat(1 << 20)), "http_400"),
        ("packed", response("201 Created", "content-encoding: gzip\r\n", &b"\x1f\x8b".repeat(40_000)), ""),
        ("elsewhere", response("302 Found", "location: /again\r\n", b""), "http_302"),
        ("lengths", b"HTTP/1.1 201 Created\r\ncontent-length: 2\r\ncontent-length: 5\r\n\r\n{}".to_vec(), "broken"),
        ("huge", b"HTTP/1.1 201 Created\r\ncontent-length: 18446744073709551615\r\n\r\n".to_vec(), "broken"),
        ("chunks", b"HTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\n\r\nZZZ\r\n".to_vec(), ""),
        ("frames", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec(), "broken"),
        ("headers", headers, "broken"),
        ("twice", created.repeat(2), ""),
        ("nowhere", response("404 Not Found", "", b"<html></html>"), "http_404"),
    ]
}

// Guarantee: failures.garbled-gateway
#[tokio::test(flavor = "multi_thread")]
async fn whatever_a_gateway_answers_each_message_comes_once_and_in_order_or_the_first_is_waited_for() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute("INSERT INTO bookings (payload) VALUES ('a'), ('b'), ('c')").await.unwrap();
    let (mut relays, mut gateways) = (String::new(), Vec::new());
    for (name, answer, code) in kinds() {
        let (port, asked) = gateway(answer).await;
        relays.push_str(&format!(
            "[[relay]]\nname = \"{name}\"\nstart = \"beginning\"\n[relay.source.stream]\ntable = \"public.bookings\"\n\
             [relay.sink.sms]\nprovider = \"twilio\"\nbase_url = \"http://127.0.0.1:{port}\"\naccount_sid = \"AC1\"\n\
             auth_token = \"hunter2\"\nfrom = \"+15550000000\"\nto = \"+15551234567\"\ntext = \"{{{{ payload }}}}\"\n"
        ));
        gateways.push((name, code, asked));
    }
    let process = Process::spawn(&toml(&database, "relay", None, &relays), &["run"]);
    for (name, code, asked) in gateways {
        let asked = || asked.lock().unwrap().clone();
        if code.is_empty() {
            eventually(PATIENCE * 3, || async { asked() == ["1", "2", "3"] }).await;
            continue;
        }
        let failed = || async { standing(&owner, name).await.is_some_and(|(.., error)| error["code"] == code) };
        eventually(PATIENCE * 3, failed).await;
        let (state, is_halted, id, error) = standing(&owner, name).await.unwrap();
        let expected = if code == "broken" { ("backing_off", false) } else { ("halted", true) };
        assert_eq!((state.as_str(), is_halted, id.as_deref()), (expected.0, expected.1, Some("1")), "{name}: {error}");
        assert!(asked().iter().all(|id| id == "1"), "{name}: no later message passes it: {:?}", asked());
    }
    let log = process.log();
    assert!(!log.contains("hunter2") && !log.contains("QUMxOmh1bnRlcjI"), "a secret is shown");
}
