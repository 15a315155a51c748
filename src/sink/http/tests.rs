//! Against real servers on the loopback interface, most of them faulty in one way.

use std::future::pending;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::Request as Received;
use axum::http::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use super::*;
use crate::batch::Batch;
use crate::position::Timestamp;
use crate::sink::{Flow, Mode, Published};

mod connections;
mod pauses;

fn config(url: String) -> Config {
    Config {
        method: "POST".into(),
        url,
        headers: BTreeMap::new(),
        body: Body::Row,
        timeout: Duration::from_millis(400),
        rate_per_second: None,
        once: crate::sink::http::once::Config::default(),
        access: crate::sink::http::access::Config::default(),
    }
}

fn rows(ids: &[&str]) -> Batch {
    let mut batch = Batch::new(1);
    for id in ids {
        batch.push(Timestamp::from_pg_micros(1), id, [Some(&b"{\"secret\":\"hunter2\"}"[..])]);
    }
    batch
}

async fn publish(url: String, ids: &[&str]) -> Published {
    publish_with(&config(url), ids).await
}

async fn publish_with(config: &Config, ids: &[&str]) -> Published {
    let sink = HttpSink::new(config, "relay").expect("compiles");
    let mut publication = sink.begin(Mode::default()).expect("begins");
    publication.push(&rows(ids)).await;
    publication.finish()
}

async fn failure(url: String) -> Failure {
    let published = publish(url, &["1"]).await;
    assert_eq!(published.acknowledged, 0);
    let failure = published.stopped.expect("it has failed");
    assert!(!format!("{failure:?}").contains("hunter2") && !format!("{failure:?}").contains("token"), "{failure:?}");
    failure
}

/// A server that does `serve` with every connection, after it has read a whole request.
async fn server<F: Future<Output = ()> + Send>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let url = format!("http://{}/in?token=token", listener.local_addr().expect("bound"));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut seen = Vec::new();
            while !seen.ends_with(b"}") {
                let mut piece = [0; 1024];
                match stream.read(&mut piece).await {
                    Ok(1..) => seen.extend(piece.into_iter().take_while(|byte| *byte != 0)),
                    Ok(0) | Err(_) => break,
                }
            }
            serve(stream).await;
        }
    });
    url
}

/// A server that answers `status` with `headers`, and what it received: idempotency keys and connection numbers.
async fn answering(status: u16, header: Option<(&'static str, &'static str)>) -> (String, Arc<Mutex<Vec<Received>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let seen_there = Arc::clone(&seen);
    let router = Router::new().fallback(move |request: Received| {
        seen_there.lock().expect("not poisoned").push(request);
        let status = StatusCode::from_u16(status).expect("a status");
        async move { (status, axum::response::AppendHeaders(header), "answer") }
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let url = format!("http://{}/in?token=token", listener.local_addr().expect("bound"));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, seen)
}

#[tokio::test]
async fn messages_arrive_in_order_with_keys_and_nothing_of_the_library() {
    let (url, seen) = answering(202, None).await;
    assert_eq!(publish(url, &["1", "2", "3"]).await, Published { acknowledged: 3, stopped: None, suspects: 1 });
    let seen = seen.lock().expect("not poisoned");
    let keys: Vec<_> = seen.iter().map(|request| request.headers()["idempotency-key"].clone()).collect();
    assert_eq!(keys, ["relay/1", "relay/2", "relay/3"]);
    let headers = seen[0].headers();
    assert_eq!(headers["user-agent"], concat!("outbox-relay/", env!("CARGO_PKG_VERSION")));
    assert!(!headers.contains_key("accept-encoding") && !headers.contains_key("referer"));
}

// Guarantee: failures.key-in-use
#[tokio::test]
async fn key_in_use_is_retried_and_counts_at_the_last_time_for_each_message() {
    let (url, seen) = answering(409, None).await;
    let sink = HttpSink::new(&config(url), "relay").expect("compiles");
    let publish = async |id: &str| {
        let mut publication = sink.begin(Mode::default()).expect("begins");
        publication.push(&rows(&[id])).await;
        publication.finish().stopped.expect("it is refused")
    };
    assert_eq!(publish("1").await.class, Class::Poison, "no earlier attempt is in progress");
    sink.in_use.expect("relay/1");
    for _ in 1..TIMES_IN_USE {
        let failure = publish("1").await;
        assert_eq!((failure.class, failure.code.as_str()), (Class::Retry, "http_409"));
        assert!(!failure.ambiguous && !failure.is_outage(), "others get through: {failure:?}");
        assert!(failure.hint.contains(&format!("up to {TIMES_IN_USE} times")), "{}", failure.hint);
    }
    assert_eq!((publish("2").await.class, publish("1").await.class), (Class::Poison, Class::Poison));
    assert_eq!(publish("1").await.class, Class::Poison, "the earlier attempt is forgotten");
    assert_eq!(seen.lock().expect("not poisoned").len(), usize::try_from(TIMES_IN_USE).expect("few") + 3);
}

// Guarantee: delivery.prefix
#[tokio::test]
async fn a_status_ends_the_turn_at_the_acknowledged_prefix() {
    for (status, class, ambiguous) in [
        (301, Class::Fatal, false),
        (308, Class::Fatal, false),
        (400, Class::Poison, false),
        (401, Class::Fatal, false),
        (404, Class::Poison, false),
        (408, Class::Retry, true),
        (429, Class::Retry, false),
        (500, Class::Retry, true),
        (503, Class::Retry, true),
    ] {
        let (url, seen) = answering(status, Some(("location", "http://127.0.0.1:1/"))).await;
        let failure = failure(url.clone()).await;
        assert_eq!((failure.class, failure.ambiguous, failure.retry_after), (class, ambiguous, None), "{status}");
        let origin = url.split_once("/in").expect("has a path").0;
        assert_eq!(failure.message, format!("{origin} answered {status}"));
        assert_eq!(
            seen.lock().expect("not poisoned").len(),
            1,
            "nothing is sent after a failure, no redirect followed"
        );
    }
}

// Guarantee: failures.ambiguous
#[tokio::test]
async fn a_refused_connection_has_sent_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let url = format!("http://{}/", listener.local_addr().expect("bound"));
    drop(listener);
    let failure = failure(url).await;
    assert_eq!((failure.class, failure.ambiguous, failure.code.as_str()), (Class::Retry, false, "connect"));
    assert!(failure.message.contains("refused"), "{}", failure.message);
}

// Guarantee: failures.ambiguous
#[tokio::test]
async fn silence_after_the_request_is_ambiguous() {
    let url = server(|stream| async move {
        pending::<()>().await;
        drop(stream);
    })
    .await;
    let failure = failure(url).await;
    assert_eq!((failure.class, failure.ambiguous, failure.code.as_str()), (Class::Retry, true, "timeout"));
}

#[tokio::test]
async fn a_publication_given_up_in_flight_says_so() {
    let url = server(|stream| async move {
        pending::<()>().await;
        drop(stream);
    })
    .await;
    let sink = HttpSink::new(&config(url), "relay").expect("compiles");
    let mut publication = sink.begin(Mode::default()).expect("begins");
    let batch = rows(&["1"]);
    assert!(tokio::time::timeout(Duration::from_millis(100), publication.push(&batch)).await.is_err());
    assert_eq!(publication.push(&batch).await, Flow::Stop, "an unknown outcome is never passed over");
    assert_eq!(publication.finish(), Published { acknowledged: 0, stopped: Some(Failure::deadline()), suspects: 1 });
}

// Guarantee: failures.poison-prefix
#[tokio::test]
async fn a_poison_row_stops_behind_its_acknowledged_forerunners() {
    let (url, seen) = answering(200, None).await;
    let config = Config { body: Body::Template("{{ name }}".into()), ..config(url) };
    let sink = HttpSink::new(&config, "relay").expect("compiles");
    let mut publication = sink.begin(Mode::default()).expect("begins");
    let mut batch = Batch::new(1);
    for (id, name) in [("1", Some(&b"Ann"[..])), ("2", None), ("3", Some(b"Bob"))] {
        batch.push(Timestamp::from_pg_micros(1), id, [name]);
    }
    assert_eq!(publication.push(&batch).await, Flow::Stop);
    let published = publication.finish();
    assert_eq!(published.acknowledged, 1);
    assert_eq!(published.stopped.map(|failure| failure.class), Some(Class::Poison));
    assert_eq!(seen.lock().expect("not poisoned").len(), 1);
}

/// A server that sends interim responses to each connection, from threads of its own, until dropped.
struct Flood {
    url: String,
    over: Arc<std::sync::atomic::AtomicBool>,
}

impl Flood {
    fn start() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("binds");
        let url = format!("http://{}/", listener.local_addr().expect("bound"));
        let over = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let ends = Arc::clone(&over);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let ends = Arc::clone(&ends);
                std::thread::spawn(move || {
                    // A client takes what comes before its request for the end of the connection.
                    let _ = std::io::Read::read(&mut &stream, &mut [0]);
                    let responses = b"HTTP/1.1 100 Continue\r\n\r\n".repeat(1_000);
                    // Ends when the client has closed the connection, too.
                    while !ends.load(Relaxed) && std::io::Write::write_all(&mut &stream, &responses).is_ok() {}
                });
            }
        });
        Self { url, over }
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
    }
}

// Guarantee: failures.interim
#[tokio::test]
async fn endless_interim_responses_take_no_other_thread() {
    let flood = Flood::start();
    let begun = Instant::now();
    let failure = failure(flood.url.clone()).await;
    assert_eq!((failure.class, failure.code.as_str()), (Class::Retry, "timeout"));
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
}

/// Each read the system's authorities again, one after the other, before anything else could run: probes found a replica of forty
/// such relays silent for five seconds, and on a busy machine for half a minute.
#[test]
fn many_sinks_take_little_time_to_make() {
    let cpu =
        || Duration::try_from(rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime)).expect("positive");
    let begun = cpu();
    let sinks: Vec<_> =
        (0..100).map(|_| HttpSink::new(&config("http://h/".to_owned()), "relay").expect("compiles")).collect();
    let took = cpu() - begun;
    assert!(took < Duration::from_secs(3), "{} sinks took {took:?} of CPU time", sinks.len());
}

/// What a template has failed at for two seconds takes no two more when the row is dead-lettered.
#[test]
fn failed_template_is_not_printed_again_for_a_dead_letter() {
    let numbers = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]";
    let loops = ["a", "b", "c", "d", "e", "f", "g"];
    let begin: String = loops.map(|name| format!("{{% for {name} in {numbers} %}}")).concat();
    // The sample row of compilation ends before the loops.
    let body = format!("{{% if v and v != \"0\" %}}{begin}{}{{% endif %}}", "{% endfor %}".repeat(loops.len()));
    let config = Config { body: Body::Template(body), ..config("http://h/".to_owned()) };
    let sink = crate::sink::Sink::Http(HttpSink::new(&config, "relay").expect("compiles"));
    let cpu =
        || Duration::try_from(rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime)).expect("positive");
    let failure = Failure::of(Class::Poison, crate::sink::template::FAILED, "It takes more than 2s of CPU time", "");
    let begun = cpu();
    assert_eq!(sink.rendered(&rows(&["1"]).message(0), &failure), (None, None));
    assert!(cpu() - begun < Duration::from_millis(500), "{:?}", cpu() - begun);
}
