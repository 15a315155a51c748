//! A registry of the test's own.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::super::startup::free_port;

/// What it does with questions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Answer {
    /// Answers by what it has.
    #[default]
    Truth,
    /// Answers this status with this body.
    Refuse(u16, String),
    /// Never answers.
    Hang,
}

/// See the module. It ends when dropped.
#[derive(Debug)]
pub struct ScriptedRegistry {
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
    server: Option<JoinHandle<()>>,
    /// The one before it, which may still have the port.
    gone: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Each schema's type and text, by its id less one.
    schemas: Vec<(String, String)>,
    /// The ids of each subject's versions.
    subjects: BTreeMap<String, Vec<usize>>,
    answer: Answer,
    /// Registrations are refused as incompatible, in these words.
    incompatible: Option<String>,
    /// Questions so far: method and path.
    asked: Vec<String>,
    /// The header Authorization that it wants.
    wants: Option<String>,
}

impl ScriptedRegistry {
    /// Starts it on the loopback interface, without any schema.
    ///
    /// # Errors
    /// When no port can be opened.
    pub async fn start() -> anyhow::Result<Self> {
        // Not a port of the system's choice: it must still be free when the registry comes up again.
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()?));
        let mut registry = Self { address, shared: Arc::default(), server: None, gone: None };
        registry.up().await?;
        Ok(registry)
    }

    /// Where its API begins.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// It is gone: connections are refused, and those that are open are not answered any more.
    pub fn down(&mut self) {
        if let Some(server) = self.server.take() {
            server.abort();
            self.gone = Some(server);
        }
        // A connection that is open has a task of its own.
        self.answer(Answer::Hang);
    }

    /// It is back, with what it had.
    ///
    /// # Errors
    /// When its port cannot be opened again.
    pub async fn up(&mut self) -> anyhow::Result<()> {
        self.answer(Answer::Truth);
        if self.server.is_some() {
            return Ok(());
        }
        if let Some(gone) = self.gone.take() {
            // Aborted: that is no failure.
            let _ = gone.await;
        }
        let listener = TcpListener::bind(self.address).await?;
        let router = Router::new().fallback(answer).with_state(Arc::clone(&self.shared));
        self.server = Some(tokio::spawn(async move {
            // Ends with the task only.
            let _ = axum::serve(listener, router).await;
        }));
        Ok(())
    }

    /// What it does from now on.
    pub fn answer(&self, answer: Answer) {
        self.shared().answer = answer;
    }

    /// Refuses registrations from now on, in these words; takes them again without any.
    pub fn refuse_as_incompatible(&self, words: Option<&str>) {
        self.shared().incompatible = words.map(str::to_owned);
    }

    /// Wants this header Authorization from now on.
    pub fn want(&self, authorization: &str) {
        self.shared().wants = Some(authorization.to_owned());
    }

    /// Registers a schema as the next version of a subject; answers its id. `kind` is `AVRO`, `PROTOBUF` or `JSON`.
    pub fn register(&self, subject: &str, kind: &str, text: &str) -> u32 {
        let id = self.shared().register(subject, kind, text);
        u32::try_from(id).unwrap_or(u32::MAX)
    }

    /// Forgets a subject.
    pub fn delete(&self, subject: &str) {
        self.shared().subjects.remove(subject);
    }

    /// How many questions it has had.
    #[must_use]
    pub fn questions(&self) -> usize {
        self.shared().asked.len()
    }

    /// The questions so far: method and path.
    #[must_use]
    pub fn asked(&self) -> Vec<String> {
        self.shared().asked.clone()
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        lock(&self.shared)
    }
}

impl Drop for ScriptedRegistry {
    fn drop(&mut self) {
        self.down();
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn register(&mut self, subject: &str, kind: &str, text: &str) -> usize {
        let schema = (kind.to_owned(), text.to_owned());
        let id = match self.schemas.iter().position(|known| *known == schema) {
            Some(place) => place + 1,
            None => {
                self.schemas.push(schema);
                self.schemas.len()
            }
        };
        let versions = self.subjects.entry(subject.to_owned()).or_default();
        if !versions.contains(&id) {
            versions.push(id);
        }
        id
    }

    fn described(&self, subject: &str, version: usize) -> Option<Value> {
        let id = *self.subjects.get(subject)?.get(version.checked_sub(1)?)?;
        let (kind, text) = &self.schemas[id - 1];
        Some(json!({ "subject": subject, "version": version, "id": id, "schemaType": kind, "schema": text }))
    }

    /// Status and body of what it says to a question.
    fn truth(&mut self, method: &Method, path: &[&str], body: &Value) -> (u16, Value) {
        let missing = |code: u32, message: &str| (404, json!({ "error_code": code, "message": message }));
        let kind = body["schemaType"].as_str().unwrap_or("AVRO");
        let text = body["schema"].as_str().unwrap_or_default();
        match (method.as_str(), path) {
            ("GET", ["schemas", "ids", id]) => {
                let known = id.parse().ok().and_then(|id: usize| self.schemas.get(id.checked_sub(1)?));
                known.map_or_else(
                    || missing(40_403, "Schema not found"),
                    |(kind, text)| (200, json!({ "schemaType": kind, "schema": text })),
                )
            }
            ("GET", ["subjects", subject, "versions", version]) => {
                let Some(versions) = self.subjects.get(*subject) else { return missing(40_401, "Subject not found") };
                let version = if *version == "latest" { versions.len() } else { version.parse().unwrap_or(0) };
                self.described(subject, version)
                    .map_or_else(|| missing(40_402, "Version not found"), |found| (200, found))
            }
            ("POST", ["subjects", subject]) => {
                let Some(versions) = self.subjects.get(*subject) else { return missing(40_401, "Subject not found") };
                let is_same = |id: &usize| self.schemas[id - 1] == (kind.to_owned(), text.to_owned());
                let found = versions.iter().position(is_same).and_then(|place| self.described(subject, place + 1));
                found.map_or_else(|| missing(40_403, "Schema not found"), |found| (200, found))
            }
            ("POST", ["subjects", subject, "versions"]) => match self.incompatible.clone() {
                Some(words) => (409, json!({ "error_code": 409, "message": words })),
                None => (200, json!({ "id": self.register(subject, kind, text) })),
            },
            ("POST", ["compatibility", "subjects", _, "versions", "latest"]) => {
                let messages: Vec<_> = self.incompatible.iter().cloned().collect();
                (200, json!({ "is_compatible": messages.is_empty(), "messages": messages }))
            }
            _ => (404, json!({ "error_code": 404, "message": "HTTP 404 Not Found" })),
        }
    }
}

async fn answer(
    State(shared): State<Arc<Mutex<Shared>>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let said = {
        let mut shared = lock(&shared);
        shared.asked.push(format!("{method} {}", uri.path()));
        let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let is_let_in = shared.wants.as_deref().is_none_or(|wanted| given == Some(wanted));
        match shared.answer.clone() {
            Answer::Hang => None,
            Answer::Refuse(status, body) => Some((status, body)),
            Answer::Truth if !is_let_in => {
                Some((401, "{\"error_code\":40101,\"message\":\"Unauthorized\"}".to_owned()))
            }
            Answer::Truth => {
                let path: Vec<&str> = uri.path().trim_matches('/').split('/').collect();
                let body = serde_json::from_slice(&body).unwrap_or_default();
                let (status, said) = shared.truth(&method, &path, &body);
                Some((status, said.to_string()))
            }
        }
    };
    let Some((status, body)) = said else {
        tokio::time::sleep(Duration::from_secs(600)).await;
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, [(header::CONTENT_TYPE, "application/vnd.schemaregistry.v1+json")], body).into_response()
}
