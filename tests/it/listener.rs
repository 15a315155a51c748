//! The listener of probes and metrics: few paths, read only, and no client of it disturbs the relay.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::outside::{get, listener, printed, stdout_relay};
use crate::support::{CLOCK, PATIENCE, Process, bookings, database, eventually, toml};

/// A running relay, and the address of its listener.
async fn running() -> (Process, String, tokio_postgres::Client) {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let process = Process::spawn(&toml(&database, "relay", None, &stdout_relay("s", "")), &["run"]);
    let url = listener(&process).await;
    eventually(PATIENCE * 2, async || get(&format!("{url}/readyz")).await.0 == 200).await;
    (process, url.trim_start_matches("http://").to_owned(), owner)
}

/// The status of the answer to these bytes; 0 when the connection is closed without one.
async fn ask(address: &str, bytes: &[u8]) -> u16 {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The server may answer and close before it has taken everything.
    let _ = stream.write_all(bytes).await;
    let mut answer = vec![0; 64];
    let read = tokio::time::timeout(PATIENCE * 2, stream.read(&mut answer)).await.expect("an answer or an end");
    let text = String::from_utf8_lossy(&answer[..read.unwrap_or(0)]).into_owned();
    text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
}

// Guarantee: observe.listener
#[tokio::test(flavor = "multi_thread")]
async fn only_get_and_head_on_few_paths_are_answered_and_nothing_large_is_read() {
    let (_process, address, _owner) = running().await;
    let request =
        |line: &str, more: &str| format!("{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{more}\r\n");
    for path in ["/", "/events", "/page.css", "/page.js", "/livez", "/readyz", "/metrics"] {
        for (method, status) in [
            ("GET", 200),
            ("HEAD", 200),
            ("POST", 405),
            ("PUT", 405),
            ("PATCH", 405),
            ("DELETE", 405),
            ("OPTIONS", 405),
            ("TRACE", 405),
            ("BREW", 405),
        ] {
            assert_eq!(
                ask(&address, request(&format!("{method} {path}"), "").as_bytes()).await,
                status,
                "{method} {path}"
            );
        }
    }
    for path in [
        "/index.html",
        "/api/status",
        "/metrics/",
        "//metrics",
        "/%6detrics",
        "/../metrics",
        "/livez/..",
        "/debug/pprof",
    ] {
        assert_eq!(ask(&address, request(&format!("GET {path}"), "").as_bytes()).await, 404, "{path}");
    }
    assert_eq!(ask(&address, request("CONNECT example.org:443", "").as_bytes()).await / 100, 4);
    let body = request("POST /metrics", "content-length: 10000000000\r\n") + &"x".repeat(1 << 20);
    assert_eq!(ask(&address, body.as_bytes()).await, 405, "the body is not waited for");
    let url = request(&format!("GET /livez?{}", "x".repeat(5_000)), "");
    assert_eq!(ask(&address, url.as_bytes()).await, 414);
    let header = request("GET /livez", &format!("x: {}\r\n", "y".repeat(20_000)));
    assert_eq!(ask(&address, header.as_bytes()).await, 431);
    for endless in
        [format!("GET /{}", "x".repeat(1 << 20)), format!("GET / HTTP/1.1\r\n{}", "x: y\r\n".repeat(100_000))]
    {
        assert!([0, 400, 414, 431].contains(&ask(&address, endless.as_bytes()).await), "refused before its end");
    }
    assert!([0, 400].contains(&ask(&address, b"\x16\x03\x01\x02\x00\x01 this is TLS or nonsense \r\n\r\n").await));
    assert_eq!(get(&format!("http://{address}/livez")).await, (200, "alive\n".to_owned()));
    // A page of another site can make a name of its own lead here.
    for (path, status) in [("/", 403), ("/events", 403), ("/page.js", 403), ("/livez", 200), ("/metrics", 200)] {
        let request = format!("GET {path} HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n");
        assert_eq!(ask(&address, request.as_bytes()).await, status, "{path}");
    }
}

// Guarantee: observe.listener
#[tokio::test(flavor = "multi_thread")]
async fn connections_that_dribble_are_cut_and_do_not_slow_the_relay() {
    let (process, address, owner) = running().await;
    // More than are served at once; each sends the beginning of a request, and then a byte now and then.
    let mut dribbling = Vec::new();
    for _ in 0..100 {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        stream.write_all(b"GET /livez HTTP/1.1\r\nx: ").await.unwrap();
        dribbling.push(stream);
    }
    let (readers, mut writers): (Vec<_>, Vec<_>) = dribbling.into_iter().map(TcpStream::into_split).unzip();
    let dribble = tokio::spawn(async move {
        loop {
            for writer in &mut writers {
                let _ = writer.write_all(b"y").await;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    });
    owner.batch_execute("INSERT INTO bookings (payload) SELECT 'p' FROM generate_series(1, 100)").await.unwrap();
    eventually(PATIENCE, async || printed(&process, "s").len() == 100).await;
    for mut reader in readers {
        let mut rest = Vec::new();
        let end = tokio::time::timeout(PATIENCE * 3, reader.read_to_end(&mut rest)).await;
        assert!(end.is_ok(), "cut, however slowly it goes on");
    }
    assert_eq!(get(&format!("http://{address}/livez")).await.0, 200);
    dribble.abort();
}
