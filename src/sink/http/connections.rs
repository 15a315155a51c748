//! The connections of one sink, on a thread of their own.
//!
//! HTTP sets no limit to interim responses (1xx), and the library reads those that are there before it lets anything else run. A
//! receiver that sends them without end takes this thread, and no other: probes, locks and other relays go on.

use std::fmt;
use std::io;
use std::sync::OnceLock;
use std::time::Duration;

use reqwest::{Client, Request, Response};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::answer::Answer;

/// How much later than the library, which knows how far the request has come, its own end is given up.
const LATE: Duration = Duration::from_millis(500);

pub(super) struct Connections {
    client: Client,
    timeout: Duration,
    /// From the first request on: many sinks are made only to be looked at.
    runtime: OnceLock<io::Result<Runtime>>,
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

impl Connections {
    /// The client ends a request after `timeout`.
    pub(super) fn new(client: Client, timeout: Duration) -> Self {
        Self { client, timeout, runtime: OnceLock::new() }
    }

    /// Sends a request, and waits for the head of its final response.
    ///
    /// # Errors
    /// How it ended otherwise.
    pub(super) async fn execute(&self, request: Request) -> Result<Response, Answer> {
        let start = || Builder::new_multi_thread().worker_threads(1).thread_name("http").enable_all().build();
        let runtime = self.runtime.get_or_init(start).as_ref();
        let runtime = runtime.map_err(|error| Answer::NotSent(format!("its thread cannot be started: {error}")))?;
        let client = self.client.clone();
        // Dropped, it ends the request.
        let mut sending = JoinSet::new();
        sending.spawn_on(async move { client.execute(request).await }, runtime.handle());
        match timeout(self.timeout + LATE, sending.join_next()).await {
            Ok(Some(Ok(ended))) => ended.map_err(|error| Answer::from(&error)),
            Ok(Some(Err(_)) | None) => Err(Answer::Broken("the HTTP library has failed".to_owned())),
            Err(_) => Err(Answer::TimedOut),
        }
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        if let Some(Ok(runtime)) = self.runtime.take() {
            // A thread that is kept busy is not waited for.
            runtime.shutdown_background();
        }
    }
}
