//! `outbox-relay health`: what a HEALTHCHECK learns of a replica.

use rustix::process::Signal;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::support::outside::{listener, stdout_relay};
use crate::support::{CLOCK, PATIENCE, Process, bookings, database, eventually, outbox_relay, toml};

/// Asks with these arguments and nothing but what `listen` names: code, and the one line.
async fn health(listen: &str, args: &[&str]) -> (Option<i32>, String) {
    let toml =
        format!("[postgres]\nurl = \"postgresql://u@127.0.0.1:1/x?sslmode=disable\"\n[admin]\nlisten = \"{listen}\"\n");
    // A machine whose requests all go through a proxy asks this one without it.
    let proxy = [("http_proxy", "http://127.0.0.1:1".to_owned()), ("ALL_PROXY", "http://127.0.0.1:1".to_owned())];
    let mut process = Process::spawn_with(&toml, &[&["health"], args].concat(), &proxy);
    let code = process.wait().await;
    assert!(code == Some(2) || process.log().is_empty(), "{}", process.log());
    (code, process.out() + &process.log())
}

// Guarantee: commands.health
#[tokio::test(flavor = "multi_thread")]
async fn health_is_what_the_replica_says_of_itself() {
    let database = database().await;
    bookings(&database, CLOCK).await;
    let mut process = Process::spawn(&toml(&database, "relay", None, &stdout_relay("s", "")), &["run"]);
    let url = listener(&process).await;
    let listen = url.strip_prefix("http://").unwrap();
    eventually(PATIENCE, async || health(listen, &["--ready"]).await == (Some(0), format!("ready: {url}/readyz\n")))
        .await;
    assert_eq!(health(listen, &[]).await, (Some(0), format!("alive: {url}/livez\n")));
    assert_eq!(health("127.0.0.1:1", &["--url", &url]).await, (Some(0), format!("alive: {url}/livez\n")));

    // The system takes the connection, the process does not answer.
    process.signal(Signal::STOP);
    let silent = format!("not alive: {url}/livez: no answer within 200ms\n");
    assert_eq!(health(listen, &["--timeout", "200ms"]).await, (Some(1), silent));
    process.signal(Signal::CONT);
    assert_eq!(health(listen, &[]).await.0, Some(0));
    process.signal(Signal::TERM);
    assert_eq!(process.wait().await, Some(0));
    let refused = format!("not alive: {url}/livez: Connection refused (os error 111)\n");
    assert_eq!(health(listen, &[]).await, (Some(1), refused));
}

// Guarantee: commands.health
#[tokio::test(flavor = "multi_thread")]
async fn replica_without_its_database_is_alive_and_not_ready() {
    let toml =
        "[postgres]\nurl = \"postgresql://u@127.0.0.1:1/x?sslmode=disable\"\n[admin]\nlisten = \"127.0.0.1:0\"\n";
    let process = Process::spawn(&format!("{toml}{}", stdout_relay("s", "")), &["run"]);
    let url = listener(&process).await;
    assert_eq!(health("127.0.0.1:0", &["--url", &url]).await, (Some(0), format!("alive: {url}/livez\n")));
    let (code, line) = health("127.0.0.1:0", &["--url", &url, "--ready"]).await;
    let start = format!("not ready: {url}/readyz: answers 503 Service Unavailable: ");
    assert!(code == Some(1) && line.starts_with(&start) && line.len() > start.len() + 5, "{line}");
    assert_eq!(line.lines().count(), 1, "{line}");
}

// Guarantee: commands.health
#[tokio::test(flavor = "multi_thread")]
async fn another_programs_answer_is_not_health() {
    let other = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let listen = other.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut peer, _)) = other.accept().await {
            let _ = peer.read(&mut [0; 4096]).await;
            let _ = peer.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\nhello\x1b\n all\n").await;
        }
    });
    let (code, line) = health(&listen, &[]).await;
    let expected =
        format!("not alive: http://{listen}/livez: answers as something else than outbox-relay: hello ;  all\n");
    assert_eq!((code, line), (Some(1), expected));
}

// Guarantee: observe.exit-codes
#[tokio::test(flavor = "multi_thread")]
async fn health_that_knows_no_address_is_wrong_usage() {
    let (code, text) = health("127.0.0.1:0", &[]).await;
    assert!(code == Some(2) && text.contains("name the listener by --url"), "{text}");
    let (code, text) = health("127.0.0.1:1", &["--url", "https://127.0.0.1:1"]).await;
    assert!(code == Some(2) && text.contains("http://127.0.0.1:9464"), "{text}");
    let (code, _, log) = outbox_relay("[admin]\nlisten = \"nowhere\"\n", &["health"]).await;
    assert!(code == Some(2) && log.contains("not an address to listen on"), "{log}");
}
