//! The connections of one sink, on a thread of their own.
//!
//! HTTP sets no limit to interim responses (1xx), and the library reads those that are there before it lets anything else run. A
//! receiver that sends them without end takes this thread, and no other: probes, locks and other relays go on.

use std::fmt;
use std::io;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use reqwest::{Client, Request, Response};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::answer::Answer;

/// How much later than the library, which knows how far the request has come, its own end is given up.
const LATE: Duration = Duration::from_millis(500);

pub(super) struct Connections {
    client: Mutex<Client>,
    timeout: Duration,
    /// From the first request on: many sinks are made only to be looked at.
    thread: Mutex<Option<Thread>>,
}

/// Dropped, it ends, as soon as its receiver leaves it the time; it is not waited for.
struct Thread {
    runtime: Handle,
    _end: oneshot::Sender<()>,
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

impl Connections {
    /// The client ends a request after `timeout`.
    pub(super) fn new(client: Client, timeout: Duration) -> Self {
        Self { client: Mutex::new(client), timeout, thread: Mutex::new(None) }
    }

    /// Requests go by another client from now on.
    pub(super) fn replace(&self, client: Client) {
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = client;
    }

    /// After how long a request is given up.
    pub(super) const fn timeout(&self) -> Duration {
        self.timeout
    }

    /// When what was begun at `begun` is given up, its answer's body included. The library has the same limit, but on its own
    /// thread, which another response may have taken.
    pub(super) fn end(&self, begun: Instant) -> Instant {
        begun + self.timeout + LATE
    }

    /// Sends a request, and waits for the head of its final response.
    ///
    /// # Errors
    /// How it ended otherwise.
    pub(super) async fn execute(&self, request: Request) -> Result<Response, Answer> {
        let unstarted = |error| Answer::NotSent(format!("its thread cannot be started: {error}"));
        let runtime = self.runtime().map_err(unstarted)?;
        let client = self.client.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // Whoever sets it first decides: the thread that it is sent, or the caller that it never is.
        let decided = Arc::new(OnceLock::new());
        let begins = Arc::clone(&decided);
        let sent = async move {
            if begins.set(()).is_err() {
                return std::future::pending().await;
            }
            client.execute(request).await
        };
        // Dropped, it ends the request.
        let mut sending = JoinSet::new();
        sending.spawn_on(sent, &runtime);
        match timeout(self.timeout + LATE, sending.join_next()).await {
            Ok(Some(Ok(ended))) => ended.map_err(|error| Answer::from(&error)),
            Ok(Some(Err(_)) | None) => Err(Answer::Broken("the HTTP library has failed".to_owned())),
            Err(_) if decided.set(()).is_ok() => {
                Err(Answer::NotSent("another response of the receiver does not end".to_owned()))
            }
            Err(_) => Err(Answer::TimedOut),
        }
    }

    fn runtime(&self) -> io::Result<Handle> {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = &*thread {
            return Ok(thread.runtime.clone());
        }
        let (tell, told) = sync_channel(1);
        let (end, ended) = oneshot::channel();
        std::thread::Builder::new().name("http".to_owned()).spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build();
            let failed = |error: &io::Error| io::Error::new(error.kind(), error.to_string());
            let _ = tell.send(runtime.as_ref().map(|runtime| runtime.handle().clone()).map_err(failed));
            if let Ok(runtime) = runtime {
                let _: Result<(), _> = runtime.block_on(ended);
            }
        })?;
        let runtime = told.recv().map_err(io::Error::other)??;
        *thread = Some(Thread { runtime: runtime.clone(), _end: end });
        Ok(runtime)
    }
}
