use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use axum::body::BodyDataStream;
use futures_util::StreamExt as _;

use super::*;
use crate::admin::Source;
use crate::admin::page::tests::calm;
use crate::health::{Heartbeat, Readiness};
use crate::metrics::exporter::Exporter;
use crate::relay::inspect::overview::Overview;

const HOUR: Duration = Duration::from_secs(3_600);
const PATIENCE: Duration = Duration::from_secs(10);
/// As in `run`, but for the pauses.
const QUICK: Pace = Pace { every: Duration::from_millis(50), heartbeat: Duration::from_millis(200), life: HOUR };
/// Nothing happens by itself.
const STILL: Pace = Pace { every: HOUR, heartbeat: Duration::from_millis(200), life: HOUR };

/// A database in which one cursor has so many dead letters.
#[derive(Debug)]
struct Letters(Arc<AtomicUsize>);

#[async_trait]
impl Source for Letters {
    async fn look(&self) -> anyhow::Result<Overview> {
        let mut overview = calm(1);
        // Other tests measure the lag of the cursors that it has.
        overview.status.cursors[0].name = "streamed".to_owned();
        overview.status.cursors[0].dead_letters = i64::try_from(self.0.load(Ordering::SeqCst)).expect("small");
        Ok(overview)
    }

    async fn rest(&self) {}
}

struct Stage {
    state: State,
    page: Arc<StatusPage>,
    letters: Arc<AtomicUsize>,
}

impl Stage {
    fn new(pace: Pace) -> Self {
        let letters = Arc::new(AtomicUsize::new(0));
        let source = Box::new(Letters(Arc::clone(&letters)));
        let page = StatusPage::at_pace(pace, source, "relay-1".to_owned(), Vec::new());
        let state = State {
            heartbeat: Arc::new(Heartbeat::new(HOUR)),
            readiness: Readiness::default(),
            exporter: Exporter::detached(),
            page: Some(Arc::clone(&page)),
            tokens: None,
            token_for_metrics: false,
            ending: CancellationToken::new(),
        };
        Self { state, page, letters }
    }

    async fn open(&self) -> Stream {
        Stream(open(&self.page, &self.state).await.expect("a place").into_data_stream())
    }

    async fn refused(&self) -> Refused {
        open(&self.page, &self.state).await.expect_err("no place")
    }
}

struct Stream(BodyDataStream);

impl Stream {
    /// The next event: its name, and the number of what is shown. None when the stream is over.
    async fn next(&mut self) -> Option<(String, String)> {
        let bytes = tokio::time::timeout(PATIENCE, self.0.next()).await.expect("an event in time")?;
        let text = String::from_utf8(bytes.expect("no error").to_vec()).expect("UTF-8");
        let event = text.strip_prefix("event: ").and_then(|text| text.strip_suffix("\n\n"));
        let (kind, number) = event.and_then(|event| event.split_once("\ndata: ")).expect("an event");
        assert!(number.len() == 16 && number.bytes().all(|byte| byte.is_ascii_hexdigit()), "{text}");
        Some((kind.to_owned(), number.to_owned()))
    }
}

fn is(kind: &str, number: &str) -> Option<(String, String)> {
    Some((kind.to_owned(), number.to_owned()))
}

// Guarantee: page.live
#[tokio::test]
async fn stream_says_what_is_shown_and_then_changes_only() {
    let stage = Stage::new(QUICK);
    let mut stream = stage.open().await;
    let (kind, first) = stream.next().await.expect("the first event");
    assert_eq!(kind, "change");
    for _ in 0..8 {
        assert_eq!(stream.next().await, is("alive", &first), "nothing has changed");
    }
    stage.letters.store(1, Ordering::SeqCst);
    let changed = loop {
        match stream.next().await.expect("the stream goes on") {
            (kind, number) if kind == "change" => break number,
            alive => assert_eq!(Some(alive), is("alive", &first)),
        }
    };
    assert_ne!(changed, first);
    let mut other = stage.open().await;
    assert_eq!(other.next().await, is("change", &changed), "the next one begins with what is shown now");
}

// Guarantee: page.streams
#[tokio::test]
async fn stream_that_is_not_read_keeps_the_newest_only() {
    let stage = Stage::new(STILL);
    let mut stream = stage.open().await;
    stream.next().await.expect("the first event");
    for version in 0..10_000 {
        stage.page.live().publish(version);
    }
    let newest = format!("{:016x}", 9_999);
    assert_eq!(stream.next().await, is("change", &newest));
    assert_eq!(stream.next().await, is("alive", &newest));
}

// Guarantee: page.streams
#[tokio::test]
async fn places_for_streams_are_bounded_and_free_again() {
    let stage = Stage::new(STILL);
    let mut streams = Vec::new();
    for _ in 0..STREAMS {
        streams.push(stage.open().await);
    }
    assert_eq!(stage.refused().await, Refused::Full);
    streams.pop();
    streams.push(stage.open().await);
    assert_eq!(stage.refused().await, Refused::Full);
}

// Guarantee: page.cost
#[tokio::test]
async fn page_is_rendered_while_a_stream_is_open_and_no_longer() {
    let stage = Stage::new(QUICK);
    let works = || *stage.page.live().works();
    assert!(!works());
    for _ in 0..2 {
        let (one, other) = (stage.open().await, stage.open().await);
        assert!(works());
        drop(one);
        tokio::time::sleep(QUICK.every * 4).await;
        assert!(works(), "one is open");
        drop(other);
        let end = Instant::now() + PATIENCE;
        while works() {
            assert!(Instant::now() < end, "it is rendered without a stream");
            sleep(Duration::from_millis(10)).await;
        }
    }
}

#[tokio::test]
async fn stream_ends_with_its_life_so_that_the_next_is_opened() {
    let stage = Stage::new(Pace { life: Duration::from_millis(50), ..STILL });
    let mut stream = stage.open().await;
    let (_, number) = stream.next().await.expect("the first event");
    assert_eq!(stream.next().await, is("end", &number));
    assert_eq!(stream.next().await, None);
}

// Guarantee: page.streams
#[tokio::test]
async fn process_that_ends_ends_its_streams_and_opens_none() {
    let stage = Stage::new(Pace { heartbeat: HOUR, ..STILL });
    let mut stream = stage.open().await;
    let (_, number) = stream.next().await.expect("the first event");
    stage.state.ending.cancel();
    assert_eq!(stream.next().await, is("end", &number));
    assert_eq!(stream.next().await, None);
    assert_eq!(stage.refused().await, Refused::Ending);
    assert!(Refused::Ending.told().ends_with("open the page of another one\n"));
}
