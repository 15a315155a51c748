//! Open pages hear that there is something else to see, and what hears it costs little.

use rustix::process::Signal;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::*;
use crate::support::outbox_relay;

/// So many streams are open at once.
const STREAMS: usize = 32;

/// An open stream of events.
struct Events {
    response: Response,
    read: String,
}

impl Events {
    async fn open(url: &str) -> Self {
        let response = client().get(format!("{url}/events")).send().await.unwrap();
        assert_eq!(response.status(), 200);
        Self { response, read: String::new() }
    }

    /// The next event: its name, and the number of what is shown. None when the stream is over.
    async fn next(&mut self) -> Option<(String, String)> {
        loop {
            if let Some((event, rest)) = self.read.split_once("\n\n") {
                let (kind, number) = event.strip_prefix("event: ").unwrap().split_once("\ndata: ").unwrap();
                let event = (kind.to_owned(), number.to_owned());
                self.read = rest.to_owned();
                return Some(event);
            }
            let chunk = self.response.chunk().await.ok()??;
            self.read.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// The number of what is shown after the next change.
    async fn change(&mut self) -> String {
        loop {
            let (kind, number) = self.next().await.expect("the stream goes on");
            match kind.as_str() {
                "change" => return number,
                kind => assert_eq!(kind, "alive"),
            }
        }
    }

    /// Waits until nothing has changed for as long as three looks take: what is shown then.
    async fn calm(&mut self) -> String {
        let mut shown = timeout(PATIENCE, self.change()).await.expect("the first event comes immediately");
        let end = Instant::now() + PATIENCE * 4;
        while let Ok(now) = timeout(Duration::from_secs(7), self.change()).await {
            assert!(Instant::now() < end, "a page of a relay without rows changes all the time");
            shown = now;
        }
        shown
    }
}

async fn status(url: &str) -> u16 {
    client().get(url).send().await.unwrap().status().as_u16()
}

// Guarantee: page.live
#[tokio::test(flavor = "multi_thread")]
async fn open_page_hears_of_a_pause_and_of_no_time_that_passes() {
    let database = database().await;
    let _owner = bookings(&database, CLOCK).await;
    let (_process, url) = running(&database, &stdout_relay("events", "")).await;
    let mut events = Events::open(&url).await;
    let calm = events.calm().await;
    let html = page(&url).await;
    assert!(html.contains(&format!("<main id=main data-version={calm}>")), "{calm}: {html}");
    let owners = toml(&database, "postgres", None, &stdout_relay("events", ""));
    let (code, _, log) = outbox_relay(&owners, &["cursor", "pause", "events"]).await;
    assert_eq!(code, Some(0), "{log}");
    let paused = timeout(PATIENCE, events.change()).await.expect("within seconds");
    assert_ne!(paused, calm);
    says(&url, &["1 of 1 needs attention: 1 paused"]).await;
}

// Guarantee: page.streams
#[tokio::test(flavor = "multi_thread")]
async fn streams_beyond_the_limit_are_refused_and_the_page_is_not() {
    let database = database().await;
    let _owner = bookings(&database, CLOCK).await;
    let (_process, url) = running(&database, &stdout_relay("events", "")).await;
    let mut open = Vec::new();
    for _ in 0..STREAMS {
        open.push(Events::open(&url).await);
    }
    let refused = client().get(format!("{url}/events")).send().await.unwrap();
    assert_eq!(refused.status(), 503);
    let said = refused.text().await.unwrap();
    assert_eq!(said, "32 pages of this replica are live, and no more can be: close one, or load / again\n");
    assert_eq!((status(&url).await, status(&format!("{url}/livez")).await), (200, 200));
    for events in &mut open {
        let first = timeout(PATIENCE, events.next()).await.expect("the first event comes immediately");
        assert_eq!(first.expect("an event").0, "change");
    }
    drop(open.pop());
    eventually(PATIENCE, async || status(&format!("{url}/events")).await == 200).await;
}

/// The most memory that the process has had, in bytes.
fn peak(process: &Process) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

// Guarantee: page.streams
#[tokio::test(flavor = "multi_thread")]
async fn clients_that_do_not_read_cost_little_and_delay_no_probe() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let (process, url) = running(&database, &stdout_relay("events", "")).await;
    says(&url, &["The cursor is well"]).await;
    let before = peak(&process);
    let mut silent = Vec::new();
    for _ in 0..200 {
        let mut stream = TcpStream::connect(url.trim_start_matches("http://")).await.unwrap();
        stream.write_all(b"GET /events HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        silent.push(stream);
        owner.batch_execute("INSERT INTO bookings (payload) VALUES ('p')").await.unwrap();
    }
    for _ in 0..10 {
        let begun = Instant::now();
        assert_eq!(status(&format!("{url}/livez")).await, 200);
        assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    }
    says(&url, &["The cursor is well"]).await;
    let grown = (peak(&process) - before) >> 20;
    assert!(grown < 48, "{grown} MiB for 200 clients that do not read");
}

// Guarantee: page.streams
#[tokio::test(flavor = "multi_thread")]
async fn sigterm_ends_open_streams_and_the_process_exits_with_0() {
    let database = database().await;
    let _owner = bookings(&database, CLOCK).await;
    let (mut process, url) = running(&database, &stdout_relay("events", "")).await;
    let mut events = Events::open(&url).await;
    timeout(PATIENCE, events.change()).await.expect("the first event comes immediately");
    process.signal(Signal::TERM);
    let over = async { while events.next().await.is_some() {} };
    timeout(PATIENCE, over).await.expect("the stream ends with the drain");
    let code = timeout(PATIENCE, process.wait()).await.expect("an open page keeps no process");
    assert_eq!(code, Some(0), "{}", process.log());
}
