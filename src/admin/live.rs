//! Tells open pages that there is something else to see: `/events`, server-sent events.
//!
//! Promise: an event has the number of what the page shows, and nothing of the page. What is held for a client that does not read is
//! bounded: it gets the newest number once it reads. While streams are open, the page is rendered every two seconds, once
//! for all of them; without a stream it is not. A stream ends when the process begins to end.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use futures_util::stream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::State;
use super::status_page::StatusPage;

/// So many streams are open at once. Each is a connection of the listener, too, of which one address gets a part only.
const STREAMS: usize = 32;

/// How often what is done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// The page is rendered again.
    every: Duration,
    /// A stream without a change says that it is there. Shorter than the listener lets a connection last without a byte.
    heartbeat: Duration,
    /// A stream ends, and its client opens the next one: so long a client that is gone without a word costs anything.
    life: Duration,
}

/// Of `run`.
pub(super) const USUAL: Pace =
    Pace { every: Duration::from_secs(2), heartbeat: Duration::from_secs(15), life: Duration::from_secs(60) };

/// Why there is no stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// There are as many as there may be.
    Full,
    /// The process ends.
    Ending,
}

impl Refused {
    /// In a sentence, for people.
    pub(super) fn told(self) -> String {
        match self {
            Self::Full => {
                format!("{STREAMS} pages of this replica are live, and no more can be: close one, or load / again\n")
            }
            Self::Ending => "this replica is ending: open the page of another one\n".to_owned(),
        }
    }
}

/// The streams of one page.
#[derive(Debug)]
pub(super) struct Live {
    pace: Pace,
    places: Arc<Semaphore>,
    /// The number of what the page shows; older than its pace when there is no stream.
    shown: watch::Sender<u64>,
    works: Mutex<bool>,
}

impl Live {
    pub(super) fn new(pace: Pace) -> Self {
        let (shown, _) = watch::channel(0);
        Self { pace, places: Arc::new(Semaphore::new(STREAMS)), shown, works: Mutex::default() }
    }

    fn works(&self) -> MutexGuard<'_, bool> {
        self.works.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This is shown now; streams that have said so are not woken.
    fn publish(&self, version: u64) {
        self.shown.send_if_modified(|shown| std::mem::replace(shown, version) != version);
    }

    /// Whether no stream is open: then the next one begins the work again.
    fn ends(&self) -> bool {
        let mut works = self.works();
        *works = self.shown.receiver_count() > 0;
        !*works
    }
}

/// Opens a stream, whose first event comes immediately.
///
/// # Errors
/// Why there is none.
pub(super) async fn open(page: &Arc<StatusPage>, state: &State) -> Result<Body, Refused> {
    let live = page.live();
    if state.ending.is_cancelled() {
        return Err(Refused::Ending);
    }
    let place = Arc::clone(&live.places).try_acquire_owned().map_err(|_| Refused::Full)?;
    // Before it is seen whether the work goes on, so that it does.
    let shown = live.shown.subscribe();
    live.publish(page.shown(&state.heartbeat, &state.readiness).await.version);
    if !std::mem::replace(&mut *live.works(), true) {
        tokio::spawn(work(Arc::clone(page), state.clone()));
    }
    let events = Events {
        shown,
        heartbeat: live.pace.heartbeat,
        end: Instant::now() + live.pace.life,
        ending: state.ending.clone(),
        said: None,
        is_over: false,
        _place: place,
    };
    Ok(Body::from_stream(stream::unfold(events, |mut events| async move {
        let event = events.next().await?;
        Some((Ok::<_, Infallible>(event), events))
    })))
}

/// Renders the page again and again while a stream is open.
async fn work(page: Arc<StatusPage>, state: State) {
    loop {
        sleep(page.live().pace.every).await;
        if page.live().ends() {
            return;
        }
        page.live().publish(page.shown(&state.heartbeat, &state.readiness).await.version);
    }
}

/// One stream.
#[derive(Debug)]
struct Events {
    shown: watch::Receiver<u64>,
    heartbeat: Duration,
    end: Instant,
    ending: CancellationToken,
    /// The number in the last event; none before the first.
    said: Option<u64>,
    is_over: bool,
    _place: OwnedSemaphorePermit,
}

impl Events {
    /// The next event; none when the stream is over. Nothing is lost when this is dropped before it is done.
    async fn next(&mut self) -> Option<String> {
        let Some(said) = self.said else { return Some(self.change()) };
        if self.is_over {
            return None;
        }
        tokio::select! {
            biased;
            () = self.ending.cancelled() => {}
            () = sleep_until(self.end) => {}
            () = another(&mut self.shown, said) => return Some(self.change()),
            () = sleep(self.heartbeat) => return Some(event("alive", said)),
        }
        self.is_over = true;
        Some(event("end", said))
    }

    fn change(&mut self) -> String {
        let version = *self.shown.borrow_and_update();
        self.said = Some(version);
        event("change", version)
    }
}

/// Waits until something else is shown.
async fn another(shown: &mut watch::Receiver<u64>, said: u64) {
    let seen = shown.wait_for(|version| *version != said).await.is_ok();
    if !seen {
        // The page is gone, and with it the listener: what ends the stream is on its way.
        std::future::pending::<()>().await;
    }
}

fn event(kind: &str, version: u64) -> String {
    format!("event: {kind}\ndata: {version:016x}\n\n")
}

#[cfg(test)]
#[path = "live_tests.rs"]
mod tests;
