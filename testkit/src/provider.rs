//! A provider of the user's: it takes one HTTP request per message, by any method and on any path, and answers each as
//! it is told: at once, late, never, or with an error.
//!
//! It writes down every request before it answers, and when its answer was handed over: the record is what the receiver
//! has, the answer only what the sender knows. An accepted message gets an id, its number among all requests. `GET` on a
//! path that ends with a key says whether a message with this key was accepted: 200 with its id, or 404.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::{Json, Router};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use outbox_relay::position::Timestamp;

/// What the provider does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Accepts it and answers 200 with its id.
    Accept,
    /// Accepts it at once and answers 200 after this long.
    Late(Duration),
    /// Accepts it and never answers.
    Hang,
    /// Does not accept it and never answers.
    Lose,
    /// Does not accept it and answers this status.
    Refuse(u16),
}

/// A request that has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// When.
    pub at: Timestamp,
    /// For example `PUT`.
    pub method: String,
    /// Without a query.
    pub path: String,
    /// The header `Idempotency-Key`; empty when there is none.
    pub key: String,
    /// The body.
    pub body: String,
    /// Which request with this key it is, from 1; always 1 without a key.
    pub attempt: usize,
}

/// A request and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// What has come.
    pub request: Request,
    /// What was done with it.
    pub answer: Answer,
    /// When the answer was handed over; none as long as it is not, and indefinitely when the sender has gone before.
    pub answered_at: Option<Timestamp>,
}

/// A provider; it ends when dropped.
#[derive(Debug)]
pub struct Provider {
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
    server: JoinHandle<()>,
}

type Decide = Box<dyn Fn(&Request) -> Answer + Send>;

struct Shared {
    decide: Decide,
    received: Vec<Received>,
    attempts: HashMap<String, usize>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("received", &self.received.len()).finish_non_exhaustive()
    }
}

impl Request {
    /// Its key without the due instant that keys of due rows end with.
    #[must_use]
    pub fn row(&self) -> &str {
        let due = |last: &str| Timestamp::parse_rfc3339(last).is_ok();
        self.key.rsplit_once('/').filter(|(_, last)| due(last)).map_or(&self.key, |(row, _)| row)
    }
}

impl Received {
    /// Whether the receiver has the message.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        !matches!(self.answer, Answer::Refuse(_) | Answer::Lose)
    }

    /// How long the sender waited for the answer; none when it never got one.
    #[must_use]
    pub fn took(&self) -> Option<Duration> {
        Some(self.answered_at?.since(self.request.at))
    }
}

impl Provider {
    /// Starts it on the loopback interface; `decide` says what becomes of each request.
    ///
    /// # Errors
    /// When no port can be opened.
    pub async fn start(decide: impl Fn(&Request) -> Answer + Send + 'static) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("The provider cannot open a port")?;
        let address = listener.local_addr()?;
        let shared = Shared { decide: Box::new(decide), received: Vec::new(), attempts: HashMap::new() };
        let shared = Arc::new(Mutex::new(shared));
        let router = Router::new().fallback(respond).with_state(Arc::clone(&shared));
        let server = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                tracing::error!(%error, "the provider has ended");
            }
        });
        Ok(Self { address, shared, server })
    }

    /// Its address, without a path.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From now on `decide` says what becomes of each request.
    pub fn decide(&self, decide: impl Fn(&Request) -> Answer + Send + 'static) {
        lock(&self.shared).decide = Box::new(decide);
    }

    /// Every request so far, in order.
    #[must_use]
    pub fn received(&self) -> Vec<Received> {
        lock(&self.shared).received.clone()
    }

    /// How many requests have come so far.
    #[must_use]
    pub fn count(&self) -> usize {
        lock(&self.shared).received.len()
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.server.abort();
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn respond(
    State(shared): State<Arc<Mutex<Shared>>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: String,
) -> (StatusCode, Json<serde_json::Value>) {
    if method == Method::GET {
        return asked(&lock(&shared), uri.path());
    }
    let key = headers.get("idempotency-key").and_then(|key| key.to_str().ok()).unwrap_or_default().to_owned();
    let (index, answer) = {
        let mut shared = lock(&shared);
        let mut attempt = 1;
        if !key.is_empty() {
            let before = shared.attempts.entry(key.clone()).or_default();
            *before += 1;
            attempt = *before;
        }
        let (method, path) = (method.to_string(), uri.path().to_owned());
        let request = Request { at: super::now(), method, path, key, body, attempt };
        let answer = (shared.decide)(&request);
        shared.received.push(Received { request, answer, answered_at: None });
        (shared.received.len() - 1, answer)
    };
    // Whoever goes away before the end of the wait drops this function, too: nothing is handed over then.
    let status = match answer {
        Answer::Accept => StatusCode::OK,
        Answer::Late(pause) => {
            tokio::time::sleep(pause).await;
            StatusCode::OK
        }
        Answer::Hang | Answer::Lose => std::future::pending().await,
        Answer::Refuse(status) => StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
    };
    lock(&shared).received[index].answered_at = Some(super::now());
    let id = status.is_success().then(|| id(index));
    (status, Json(serde_json::json!({ "id": id })))
}

fn id(index: usize) -> String {
    format!("m-{index}")
}

/// What is known of the message whose key the path ends with.
fn asked(shared: &Shared, path: &str) -> (StatusCode, Json<serde_json::Value>) {
    let is_it = |one: &Received| one.is_accepted() && !one.request.key.is_empty() && path.ends_with(&one.request.key);
    match shared.received.iter().position(is_it) {
        Some(index) => (StatusCode::OK, Json(serde_json::json!({ "id": id(index) }))),
        None => (StatusCode::NOT_FOUND, Json(serde_json::Value::Null)),
    }
}

#[cfg(test)]
mod tests;
