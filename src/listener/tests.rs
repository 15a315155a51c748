//! Connections that wait for their clients make room.

use std::sync::Arc;

use axum::body::Body;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use super::*;

#[test]
fn address_that_cannot_be_had_is_told_with_what_helps() {
    let told = |cause| {
        let address = "127.0.0.1:9464".parse().expect("an address");
        BindError { address, section: "admin", cause }.to_string()
    };
    let taken = told(io::ErrorKind::AddrInUse.into());
    assert_eq!(taken, "cannot listen on 127.0.0.1:9464: address already in use (set [admin] listen)");
    for (errno, fix) in
        [(Errno::MFILE, "of this process: LimitNOFILE="), (Errno::NFILE, "of this machine: sysctl fs.file-max")]
    {
        let told = told(errno.into());
        assert!(told.contains("raise the limit of open files") && told.contains(fix), "{told}");
        assert!(!told.contains("listen)"), "another address helps as little: {told}");
    }
}

#[tokio::test]
async fn a_silent_connection_ends_with_its_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let mut client = TcpStream::connect(listener.local_addr().expect("bound")).await.expect("connects");
    let (question, life) = (Duration::from_millis(50), Duration::from_secs(3600));
    let bounded = Bounded::new(listener, Bounds { connections: 1, question, life });
    tokio::spawn(async move { axum::serve(bounded, axum::Router::new()).await });
    let mut rest = Vec::new();
    client.read_to_end(&mut rest).await.expect("the server closes");
}

// Guarantee: observe.connections
#[tokio::test]
async fn oldest_silent_connection_gives_way_to_a_new_one() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let address = listener.local_addr().expect("bound");
    let hour = Duration::from_secs(3600);
    let bounded = Bounded::new(listener, Bounds { connections: 3, question: hour, life: hour });
    let (began, goes_on) = (Arc::new(tokio::sync::Notify::new()), Arc::new(tokio::sync::Notify::new()));
    let (begins, may_go_on) = (Arc::clone(&began), Arc::clone(&goes_on));
    let slow = axum::routing::get(|| async move {
        begins.notify_one();
        may_go_on.notified().await;
        "slow"
    });
    let router = axum::Router::new().route("/slow", slow).route("/", axum::routing::get(|| async { "quick" }));
    tokio::spawn(async move { axum::serve(bounded, router).await });
    let request = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    // It has asked and waits for its answer: it is never closed for others.
    let mut asked = TcpStream::connect(address).await.expect("connects");
    asked.write_all(request("/slow").as_bytes()).await.expect("asks");
    began.notified().await;
    let mut silent = Vec::new();
    for _ in 0..20 {
        let mut dribbling = TcpStream::connect(address).await.expect("connects");
        dribbling.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n").await.expect("begins to ask");
        silent.push(dribbling);
    }
    let mut answer = String::new();
    let mut probe = TcpStream::connect(address).await.expect("connects");
    probe.write_all(request("/").as_bytes()).await.expect("asks");
    let read = tokio::time::timeout(Duration::from_secs(10), probe.read_to_string(&mut answer)).await;
    read.expect("not behind those that are silent").expect("is answered");
    assert!(answer.ends_with("quick"), "{answer}");
    goes_on.notify_one();
    asked.read_to_string(&mut answer).await.expect("is answered");
    assert!(answer.ends_with("slow"), "{answer}");
}

/// A server with so many connections, each of which lasts so long from the beginning of an answer on.
async fn serving(connections: usize, life: Duration, router: axum::Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let address = listener.local_addr().expect("bound");
    let bounded = Bounded::new(listener, Bounds { connections, question: Duration::from_secs(3600), life });
    tokio::spawn(async move { axum::serve(bounded, router).await });
    address
}

/// The same, which answers `quick` to any path.
async fn quick(connections: usize) -> SocketAddr {
    let router = axum::Router::new().fallback(|_: axum::body::Bytes| async { "quick" });
    serving(connections, Duration::from_secs(3600), router).await
}

async fn from(peer: &str, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(format!("{peer}:0").parse().expect("an address")).expect("binds");
    socket.connect(to).await.expect("connects")
}

/// The beginning of the answer to these bytes; empty when the connection is closed.
async fn ask(stream: &mut TcpStream, bytes: &[u8]) -> String {
    let _ = stream.write_all(bytes).await;
    let mut answer = vec![0; 1024];
    let read = tokio::time::timeout(Duration::from_secs(10), stream.read(&mut answer)).await.expect("in time");
    String::from_utf8_lossy(&answer[..read.unwrap_or(0)]).into_owned()
}

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n";

// Guarantee: observe.connections
#[tokio::test]
async fn idle_connections_that_have_asked_give_way() {
    let address = quick(3).await;
    let mut idle = Vec::new();
    for _ in 0..20 {
        let mut stream = TcpStream::connect(address).await.expect("connects");
        assert!(ask(&mut stream, REQUEST).await.ends_with("quick"));
        idle.push(stream);
    }
    let mut last = idle.pop().expect("one");
    assert!(ask(&mut last, REQUEST).await.ends_with("quick"), "the newest are open still");
    assert_eq!(ask(&mut idle[0], REQUEST).await, "", "the oldest is closed");
}

// Guarantee: observe.connections-by-address
#[tokio::test]
async fn silent_peer_does_not_close_connections_of_others() {
    let address = quick(4).await;
    let mut other = from("127.0.0.2", address).await;
    assert!(ask(&mut other, REQUEST).await.ends_with("quick"));
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(from("127.0.0.3", address).await);
    }
    let mut last = silent.pop().expect("one");
    assert!(ask(&mut last, REQUEST).await.ends_with("quick"));
    assert!(ask(&mut other, REQUEST).await.ends_with("quick"), "it has rested longer than all of them");
}

// Guarantee: observe.headers
#[tokio::test]
async fn endless_headers_are_refused_before_they_are_read() {
    let address = quick(4).await;
    let mut stream = TcpStream::connect(address).await.expect("connects");
    for round in 0..3 {
        assert!(ask(&mut stream, REQUEST).await.ends_with("quick"), "{round}");
    }
    let endless = format!("GET / HTTP/1.1\r\nx: {}", "y".repeat(25 << 10));
    let answer = ask(&mut stream, endless.as_bytes()).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap_or(0), 0, "and closed");
}

/// An answer of so many parts, one every quarter of a second.
fn in_parts(count: usize) -> Body {
    Body::from_stream(futures_util::stream::unfold(0, move |sent| async move {
        tokio::time::sleep(Duration::from_millis(250)).await;
        (sent < count).then_some((Ok::<_, std::convert::Infallible>("part\n"), sent + 1))
    }))
}

#[tokio::test]
async fn stream_that_is_read_outlasts_one_answer() {
    let router = axum::Router::new().route("/", axum::routing::get(|| async { in_parts(16) }));
    let address = serving(1, Duration::from_secs(2), router).await;
    let mut client = TcpStream::connect(address).await.expect("connects");
    client.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.expect("asks");
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.expect("is answered");
    assert_eq!(answer.matches("part").count(), 16, "{answer}");
}

#[tokio::test]
async fn large_answer_that_is_read_slowly_is_cut() {
    const LARGE: usize = 32 << 20;
    let read = async |life: Duration| {
        let router = axum::Router::new().route("/", axum::routing::get(|| async { vec![b'x'; LARGE] }));
        let address = serving(1, life, router).await;
        let mut client = TcpStream::connect(address).await.expect("connects");
        client.write_all(REQUEST).await.expect("asks");
        let (mut buffer, mut answer) = (vec![0; 64 << 10], Vec::new());
        while let Ok(bytes @ 1..) = client.read(&mut buffer).await {
            answer.extend_from_slice(&buffer[..bytes]);
            if answer.len() > LARGE {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await; // it is read slowly
        }
        assert!(answer.starts_with(b"HTTP/1.1 200"), "it begins");
        answer.len()
    };
    assert!(read(Duration::from_millis(300)).await < LARGE, "all of it was read");
    assert!(read(Duration::from_secs(300)).await > LARGE, "in time it is not cut");
}

#[tokio::test]
async fn large_body_after_continue_is_no_header() {
    let address = quick(4).await;
    let mut stream = TcpStream::connect(address).await.expect("connects");
    let head = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\nexpect: 100-continue\r\n\r\n";
    assert!(ask(&mut stream, head).await.starts_with("HTTP/1.1 100"));
    assert!(ask(&mut stream, &[b'x'; 100_000]).await.ends_with("quick"));
}
