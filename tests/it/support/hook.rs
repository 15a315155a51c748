//! A receiver of webhooks that counts connections, keeps each request whole, and verifies it with the library of those who
//! wrote the specification.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{AppendHeaders, IntoResponse, Response};
use axum::serve::ListenerExt as _;

/// One request.
#[derive(Clone, Debug)]
pub struct Hooked {
    pub method: Method,
    pub path: String,
    pub headers: HeaderMap,
    pub body: String,
    /// What it was answered.
    pub status: u16,
}

impl Hooked {
    /// A header's text; panics without it.
    pub fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }

    /// Whether its signature holds for this secret, now.
    pub fn is_signed_with(&self, secret: &str) -> bool {
        standardwebhooks::Webhook::new(secret).unwrap().verify(self.body.as_bytes(), &self.headers).is_ok()
    }
}

#[derive(Debug)]
struct Inside {
    status: u16,
    location: Option<String>,
    asked: Vec<Hooked>,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Hook {
    pub port: u16,
    connections: Arc<AtomicUsize>,
    inside: Arc<Mutex<Inside>>,
}

impl Hook {
    /// Listens at these addresses, on one free port, until the test's runtime ends; accepts everything.
    pub async fn start(addresses: &[&str]) -> Self {
        let inside = Arc::new(Mutex::new(Inside { status: 200, location: None, asked: Vec::new() }));
        let connections = Arc::new(AtomicUsize::new(0));
        let listeners = listen(addresses).await;
        let port = listeners[0].local_addr().unwrap().port();
        for listener in listeners {
            let count = Arc::clone(&connections);
            let listener = listener.tap_io(move |_| {
                count.fetch_add(1, SeqCst);
            });
            let router = Router::new().fallback(answer).with_state(Arc::clone(&inside));
            tokio::spawn(async move { axum::serve(listener, router).await });
        }
        Self { port, connections, inside }
    }

    /// Answers so from now on.
    pub fn answer(&self, status: u16, location: Option<String>) {
        let mut inside = self.inside.lock().unwrap();
        (inside.status, inside.location) = (status, location);
    }

    /// Every request so far.
    pub fn asked(&self) -> Vec<Hooked> {
        self.inside.lock().unwrap().asked.clone()
    }

    /// The webhook ids that it has accepted, in order.
    pub fn accepted(&self) -> Vec<String> {
        let asked = self.asked();
        let accepted = asked.iter().filter(|hooked| hooked.status == 200);
        accepted.map(|hooked| hooked.header("webhook-id").to_owned()).collect()
    }

    /// How many connections it has accepted.
    pub fn connections(&self) -> usize {
        self.connections.load(SeqCst)
    }
}

/// The first port that is free at all of the addresses.
async fn listen(addresses: &[&str]) -> Vec<tokio::net::TcpListener> {
    for _ in 0..100 {
        let mut listeners = Vec::new();
        let mut port = 0;
        for address in addresses {
            let Ok(listener) = tokio::net::TcpListener::bind((*address, port)).await else { break };
            port = listener.local_addr().unwrap().port();
            listeners.push(listener);
        }
        if listeners.len() == addresses.len() {
            return listeners;
        }
    }
    panic!("no port is free at {addresses:?}")
}

async fn answer(
    State(inside): State<Arc<Mutex<Inside>>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: String,
) -> Response {
    let mut inside = inside.lock().unwrap();
    let status = inside.status;
    inside.asked.push(Hooked { method, path: uri.path().to_owned(), headers, body, status });
    let location = inside.location.clone().map(|location| ("location", location));
    (StatusCode::from_u16(status).unwrap(), AppendHeaders(location)).into_response()
}
