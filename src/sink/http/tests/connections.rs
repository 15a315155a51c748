//! What receivers do to connections.

use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicBool, AtomicUsize};

use super::*;

#[tokio::test]
async fn one_connection_serves_many_requests() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let url = format!("http://{}/", listener.local_addr().expect("bound"));
    let served = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("one connection");
        for _ in 0..3 {
            let mut piece = [0; 4096];
            assert_ne!(stream.read(&mut piece).await.expect("a request"), 0);
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.expect("answers");
        }
    });
    assert_eq!(publish(url, &["1", "2", "3"]).await.acknowledged, 3);
    served.await.expect("all came on one connection");
}

#[tokio::test]
async fn a_handshake_that_hangs_or_fails_has_sent_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let url = format!("https://{}/", listener.local_addr().expect("bound"));
    // Long enough that the limit for connecting ends well before the limit for the whole call.
    let patient = Config { timeout: Duration::from_secs(3), ..config(url) };
    let hanging = publish_with(&patient, &["1"]).await.stopped.expect("it has failed");
    assert_eq!((hanging.class, hanging.ambiguous, hanging.code.as_str()), (Class::Retry, false, "connect"));
    let (url, seen) = answering(200, None).await;
    let refused = failure(url.replace("http:", "https:")).await;
    assert_eq!((refused.class, refused.ambiguous, refused.code.as_str()), (Class::Retry, false, "connect"));
    assert!(seen.lock().expect("not poisoned").is_empty());
}

/// What stands before a receiver may choose by it where the request goes.
#[tokio::test]
async fn https_offers_its_protocol() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let url = format!("https://{}/", listener.local_addr().expect("bound"));
    let hello = async {
        let (mut stream, mut hello) = (listener.accept().await.expect("accepts").0, vec![0; 16 << 10]);
        let length = stream.read(&mut hello).await.expect("reads");
        hello.truncate(length);
        hello
    };
    let (hello, _) = tokio::join!(hello, failure(url));
    assert!(hello.windows(9).any(|window| window == b"\x08http/1.1"), "no ALPN in {} bytes", hello.len());
}

#[tokio::test]
async fn a_cut_after_the_request_is_ambiguous() {
    for reset in [false, true] {
        let url = server(move |stream| async move {
            if reset {
                stream.set_zero_linger().expect("sets");
            }
            drop(stream);
        })
        .await;
        let failure = failure(url).await;
        assert_eq!((failure.class, failure.ambiguous, failure.code.as_str()), (Class::Retry, true, "broken"));
    }
    let url = server(|mut stream| async move { stream.write_all(b"no HTTP\r\n\r\n").await.unwrap_or(()) }).await;
    assert!(failure(url).await.ambiguous);
}

#[tokio::test]
async fn an_endless_answer_is_read_to_the_cap_only() {
    const ENDLESS: usize = 10_000;
    for (status, acknowledged) in [("200 OK", 2), ("400 Bad Request", 0)] {
        let written = Arc::new(AtomicUsize::new(0));
        let there = Arc::clone(&written);
        let url = server(move |mut stream| {
            let written = Arc::clone(&there);
            async move {
                let head = format!("HTTP/1.1 {status}\r\ntransfer-encoding: chunked\r\n\r\n");
                let chunk = format!("2000\r\n{}\r\n", "x".repeat(0x2000));
                let mut result = stream.write_all(head.as_bytes()).await;
                while result.is_ok() && written.load(Relaxed) < ENDLESS {
                    written.fetch_add(1, Relaxed);
                    result = stream.write_all(chunk.as_bytes()).await;
                }
            }
        })
        .await;
        assert_eq!(publish(url, &["1", "2"]).await.acknowledged, acknowledged);
        assert!(written.load(Relaxed) < ENDLESS, "socket buffers aside, nothing beyond the cap is taken");
    }
}

// Guarantee: failures.interim
#[tokio::test]
async fn a_refusal_that_is_known_counts_although_another_response_has_taken_the_librarys_thread() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("binds");
    let url = format!("http://{}/", listener.local_addr().expect("bound"));
    let config = Config { timeout: Duration::from_secs(2), ..config(url) };
    let (tell, told) = tokio::sync::oneshot::channel();
    let over = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&over);
    std::thread::spawn(move || {
        let (mut refusing, _) = listener.accept().expect("the first request");
        let _ = refusing.read(&mut [0]);
        refusing.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 10\r\n\r\nx").expect("writes");
        tell.send(()).expect("awaited");
        let (mut flooding, _) = listener.accept().expect("the second request");
        let _ = flooding.read(&mut [0]);
        let responses = b"HTTP/1.1 100 Continue\r\n\r\n".repeat(1_000);
        while !ends.load(Relaxed) && flooding.write_all(&responses).is_ok() {}
    });
    let sink = HttpSink::new(&config, "relay").expect("compiles");
    let publish = async |id: &str| {
        let mut publication = sink.begin(Mode::default()).expect("begins");
        publication.push(&rows(&[id])).await;
        publication.finish()
    };
    let second = async {
        told.await.expect("the first is refused");
        publish("2").await
    };
    let ended = tokio::time::timeout(Duration::from_secs(30), async { tokio::join!(publish("1"), second) }).await;
    over.store(true, Relaxed);
    let (refused, flooded) = ended.expect("neither outlives its time-out by much");
    let failure = refused.stopped.expect("refused");
    assert_eq!((failure.class, failure.ambiguous, failure.code.as_str()), (Class::Poison, false, "http_400"));
    assert_eq!(flooded.stopped.map(|failure| failure.class), Some(Class::Retry));
}

#[tokio::test]
async fn a_slow_body_does_not_hold_an_answer_that_is_known() {
    for (status, acknowledged) in [("200 OK", 1), ("422 Unprocessable Content", 0)] {
        let url = server(move |mut stream| async move {
            let head = format!("HTTP/1.1 {status}\r\ncontent-length: 10\r\n\r\nx");
            stream.write_all(head.as_bytes()).await.expect("writes");
            pending::<()>().await;
        })
        .await;
        let published = publish(url, &["1"]).await;
        assert_eq!(published.acknowledged, acknowledged);
        let class = published.stopped.map(|failure| (failure.class, failure.ambiguous));
        assert_eq!(class, (acknowledged == 0).then_some((Class::Poison, false)));
    }
}
