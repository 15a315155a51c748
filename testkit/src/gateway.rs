//! An SMS gateway that speaks Twilio's `POST /2010-04-01/Accounts/{sid}/Messages.json` and can be told to misbehave.
//!
//! Everything it accepts is recorded, also when the sender never learns of it: the record is what the receiver has, the
//! answer only what the sender knows.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use axum::extract::rejection::FormRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::post;
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use self::answer::{error, record, refuse};
use outbox_relay::position::Timestamp;

mod answer;

/// The account that the gateway knows.
pub const ACCOUNT_SID: &str = "AC00000000000000000000000000000000";
/// Its secret.
pub const AUTH_TOKEN: &str = "demo-token";
/// What Basic authentication makes of the two.
const AUTHORIZATION: &str = "Basic QUMwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDpkZW1vLXRva2Vu";

/// What the gateway does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// Records the message and answers 201.
    Accept,
    /// Records nothing and never answers.
    Hang,
    /// Records nothing and answers this status, with `Retry-After` when given.
    Refuse {
        /// The HTTP status.
        status: u16,
        /// Seconds.
        retry_after: Option<u64>,
    },
    /// Records the message, then cuts the connection instead of an answer.
    AcceptThenClose,
    /// Records the message at once and answers 201 after this long.
    Slow(Duration),
}

/// A message that the gateway has accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sms {
    /// When.
    pub at: Timestamp,
    /// The form field `To`.
    pub to: String,
    /// The form field `From`.
    pub from: String,
    /// The form field `Body`.
    pub body: String,
    /// The request's header.
    pub idempotency_key: Option<String>,
    /// The id that the answer has, or would have had.
    pub sid: String,
}

/// A gateway; it ends when dropped.
#[derive(Debug)]
pub struct Gateway {
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
    server: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    accepted: Vec<Sms>,
    requests: u64,
    /// False: connections that are still open are cut at their next request.
    up: bool,
    /// Used up first, one a request.
    script: VecDeque<Behaviour>,
    otherwise: Behaviour,
}

#[derive(Deserialize)]
struct Form {
    #[serde(rename = "To", default)]
    to: String,
    #[serde(rename = "From", default)]
    from: String,
    #[serde(rename = "Body", default)]
    body: String,
}

impl Gateway {
    /// Starts it on the loopback interface; it accepts everything.
    ///
    /// # Errors
    /// When no port can be opened.
    pub async fn start() -> anyhow::Result<Self> {
        // Not a port of the system's choice: it must still be free when the gateway comes up again.
        Self::listen(SocketAddr::from(([127, 0, 0, 1], super::startup::free_port()?))).await
    }

    /// Starts it on this address; it accepts everything.
    ///
    /// # Errors
    /// When the port cannot be opened.
    pub async fn listen(address: SocketAddr) -> anyhow::Result<Self> {
        let shared = Shared {
            accepted: Vec::new(),
            requests: 0,
            up: false,
            script: VecDeque::new(),
            otherwise: Behaviour::Accept,
        };
        let mut gateway = Self { address, shared: Arc::new(Mutex::new(shared)), server: None };
        gateway.up().await?;
        Ok(gateway)
    }

    /// What `base_url` of the sink must be.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From now on.
    pub fn behave(&self, behaviour: Behaviour) {
        self.lock().otherwise = behaviour;
    }

    /// For the next `requests` requests, after those scripted before.
    pub fn script(&self, requests: usize, behaviour: Behaviour) {
        self.lock().script.extend(std::iter::repeat_n(behaviour, requests));
    }

    /// Everything accepted so far, in order.
    #[must_use]
    pub fn accepted(&self) -> Vec<Sms> {
        self.lock().accepted.clone()
    }

    /// Everything accepted since the last such call, in order; it is forgotten here.
    #[must_use]
    pub fn take(&self) -> Vec<Sms> {
        std::mem::take(&mut self.lock().accepted)
    }

    /// How many messages have been accepted so far.
    #[must_use]
    pub fn accepted_count(&self) -> usize {
        self.lock().accepted.len()
    }

    /// How many requests have come, whatever became of them.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.lock().requests
    }

    /// Closes the port: connections are refused, open ones cut.
    pub async fn down(&mut self) {
        if let Some(server) = self.server.take() {
            server.abort();
            // Its end is what closes the port.
            let _ = server.await;
        }
        self.lock().up = false;
    }

    /// Opens the same port again.
    ///
    /// # Errors
    /// When something else has taken it.
    pub async fn up(&mut self) -> anyhow::Result<()> {
        if self.server.is_some() {
            return Ok(());
        }
        let listener = TcpListener::bind(self.address).await.context("The SMS gateway cannot open its port")?;
        let router = Router::new()
            .route("/2010-04-01/Accounts/{sid}/Messages.json", post(messages))
            .with_state(Arc::clone(&self.shared));
        self.lock().up = true;
        self.server = Some(tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                tracing::error!(%error, "the SMS gateway has ended");
            }
        }));
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        lock(&self.shared)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        if let Some(server) = &self.server {
            server.abort();
        }
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn messages(
    State(shared): State<Arc<Mutex<Shared>>>,
    Path(sid): Path<String>,
    headers: HeaderMap,
    form: Result<axum::Form<Form>, FormRejection>,
) -> Response {
    let (up, behaviour) = {
        let mut shared = lock(&shared);
        shared.requests += 1;
        let otherwise = shared.otherwise;
        (shared.up, shared.script.pop_front().unwrap_or(otherwise))
    };
    if !up {
        cut();
    }
    let Ok(axum::Form(form)) = form else {
        return error(StatusCode::BAD_REQUEST, 20001, "The form cannot be read");
    };
    match behaviour {
        Behaviour::Hang => std::future::pending().await,
        Behaviour::Refuse { status, retry_after } => refuse(status, retry_after),
        Behaviour::Accept => record(&shared, &sid, &headers, form),
        Behaviour::AcceptThenClose => {
            let answer = record(&shared, &sid, &headers, form);
            if answer.status() != StatusCode::CREATED {
                return answer;
            }
            cut()
        }
        Behaviour::Slow(pause) => {
            let answer = record(&shared, &sid, &headers, form);
            tokio::time::sleep(pause).await;
            answer
        }
    }
}

/// Ends the connection's task, and so the connection, without an answer. No panic message: it is part of the play.
fn cut() -> ! {
    std::panic::resume_unwind(Box::new("the connection is cut"))
}

#[cfg(test)]
mod tests;
