//! Answers that are almost HTTP.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;
use crate::batch::Batch;
use crate::garbled::Garbled;
use crate::position::Timestamp;
use crate::sink::Mode;

/// Whether one of the answers in the bytes has a status of 2xx: `HTTP/1.` and a digit, then the number.
fn says_taken(answer: &[u8]) -> bool {
    answer.windows(10).any(|part| part.starts_with(b"HTTP/1.") && part[9] == b'2')
}

#[tokio::test]
async fn garbled_answers_acknowledge_nothing_but_2xx() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let url = format!("http://{}/", listener.local_addr().expect("bound"));
    let answer = Arc::new(Mutex::new(Vec::new()));
    let next = Arc::clone(&answer);
    let server = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let bytes = next.lock().expect("not poisoned").clone();
            tokio::spawn(async move {
                let mut request = [0; 4096];
                // A client that is gone is one of the ends.
                if let Ok(1..) = stream.read(&mut request).await {
                    let _ = stream.write_all(&bytes).await;
                }
            });
        }
    });
    let config = Config {
        method: "POST".into(),
        url,
        headers: BTreeMap::new(),
        body: Body::Row,
        timeout: Duration::from_secs(5),
        rate_per_second: None,
        once: once::Config::default(),
        access: crate::sink::http::access::Config::default(),
    };
    // One client: what is left over of an answer must not answer the next request.
    let sink = HttpSink::new(&config, "relay").expect("compiles");
    let (mut taken, mut refused) = (0, 0);
    for bytes in Garbled::new("http") {
        answer.lock().expect("not poisoned").clone_from(&bytes);
        let mut batch = Batch::new(1);
        batch.push(Timestamp::from_pg_micros(1), "1", [Some(&b"{}"[..])]);
        let mut publication = sink.begin(Mode::default()).expect("begins");
        publication.push(&batch).await;
        let published = publication.finish();
        if published.acknowledged == 1 {
            taken += 1;
            assert!(says_taken(&bytes) && published.stopped.is_none(), "{}", String::from_utf8_lossy(&bytes));
        } else {
            refused += 1;
            assert!(published.stopped.is_some());
        }
    }
    server.abort();
    assert!(taken > 0 && refused > 0, "{taken} taken, {refused} refused");
}
