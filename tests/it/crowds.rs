//! Many connections that send nothing, little or too much: probes and calls are answered beside them, in little memory.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::support::front::{Front, welcome};
use crate::support::outside::{get, listener, stdout_relay};
use crate::support::{CLOCK, PATIENCE, Process, bookings, database, eventually, toml};

/// A running relay, and the address of its listener.
async fn running() -> (Process, String) {
    let database = database().await;
    let _owner = bookings(&database, CLOCK).await;
    let process = Process::spawn(&toml(&database, "relay", None, &stdout_relay("s", "")), &["run"]);
    let url = listener(&process).await;
    eventually(PATIENCE * 2, async || get(&format!("{url}/readyz")).await.0 == 200).await;
    (process, url.trim_start_matches("http://").to_owned())
}

/// So many connections, each with the bytes sent that it takes.
async fn crowd(address: &str, connections: usize, bytes: &[u8]) -> Vec<TcpStream> {
    let mut crowd = Vec::with_capacity(connections);
    for _ in 0..connections {
        let mut stream = TcpStream::connect(address).await.unwrap();
        // It may be closed for a later one, or refused, before it has taken everything.
        let _ = tokio::time::timeout(PATIENCE, stream.write_all(bytes)).await;
        crowd.push(stream);
    }
    crowd
}

/// How long `GET` of this path takes, at most of ten times. Without a client of a library, whose own start would be measured.
async fn slowest(address: &str, path: &str) -> Duration {
    let mut slowest = Duration::ZERO;
    for _ in 0..10 {
        let (begun, mut answer) = (Instant::now(), String::new());
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        slowest = slowest.max(begun.elapsed());
    }
    slowest
}

/// The most memory that the process has had, in bytes.
fn peak(process: &Process) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

// Guarantee: observe.connections
#[tokio::test(flavor = "multi_thread")]
async fn livez_answers_beside_silent_and_idle_connections() {
    let (_process, address) = running().await;
    let silent = crowd(&address, 512, b"").await;
    let took = slowest(&address, "/livez").await;
    assert!(took < Duration::from_secs(1), "beside silent ones: {took:?}");
    drop(silent);
    let mut idle = Vec::new();
    for _ in 0..512 {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        stream.write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let read = tokio::time::timeout(Duration::from_secs(1), stream.read(&mut [0; 64])).await;
        assert!(read.is_ok(), "an answer beside {} that have asked and are idle", idle.len());
        idle.push(stream);
    }
    let took = slowest(&address, "/livez").await;
    assert!(took < Duration::from_secs(1), "beside idle ones: {took:?}");
}

/// Each asks for the metrics a thousand times at once, and reads what comes.
async fn flood(address: &str) -> JoinSet<()> {
    let mut flood = JoinSet::new();
    for mut stream in crowd(address, 64, "GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n".repeat(1_000).as_bytes()).await {
        flood.spawn(async move {
            let mut buffer = vec![0; 64 << 10];
            while stream.read(&mut buffer).await.is_ok_and(|bytes| bytes > 0) {}
        });
    }
    flood
}

// Guarantee: observe.connections
#[tokio::test(flavor = "multi_thread")]
async fn livez_answers_beside_a_flood_of_requests_for_metrics() {
    let (_process, address) = running().await;
    let mut flood = flood(&address).await;
    let took = slowest(&address, "/livez").await;
    let ended = std::iter::from_fn(|| flood.try_join_next()).count();
    assert!(!flood.is_empty(), "{ended} have been answered, and no other asked meanwhile");
    assert!(took < Duration::from_secs(1), "{took:?}");
}

// Guarantee: observe.connections
#[tokio::test(flavor = "multi_thread")]
async fn intake_answers_beside_1500_silent_connections() {
    let database = database().await;
    let _owner = welcome(&database).await;
    let front = Front::start(&database, "").await;
    let address = front.url.trim_start_matches("http://");
    let _silent = crowd(address, 1500, b"").await;
    let took = slowest(address, "/openapi.json").await;
    assert!(took < Duration::from_secs(1), "{took:?}");
    let call = json!({ "dedupe_key": "k", "user_id": "ada", "template": "welcome" });
    assert_eq!(front.post(&call).await.status, 202);
}

// Guarantee: observe.headers
#[tokio::test(flavor = "multi_thread")]
async fn unfinished_headers_cost_little_memory() {
    let database = database().await;
    let front = Front::start(&database, "").await;
    let address = front.url.trim_start_matches("http://");
    assert_eq!(get(&format!("{}/openapi.json", front.url)).await.0, 200);
    let before = peak(&front.process);
    let head = format!("GET / HTTP/1.1\r\nx: {}", "y".repeat(400_000));
    let _unfinished = crowd(address, 512, head.as_bytes()).await;
    assert_eq!(get(&format!("{}/openapi.json", front.url)).await.0, 200);
    let grown = (peak(&front.process) - before) >> 20;
    // 512 times 24 KiB are 12 MiB, and each connection has its own state.
    assert!(grown < 48, "{grown} MiB for 512 unfinished headers");
}
