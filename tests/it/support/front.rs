//! A process with an HTTP intake, and a client that asks it.

use std::path::PathBuf;

use outbox_testkit::startup::private;
use reqwest::{Method, RequestBuilder};
use serde_json::Value;

use super::outside::{client, line};
use super::{Database, Process, toml};

/// The token that clients send unless a test says otherwise.
pub const TOKEN: &str = "canaryToken0123456789";

/// The configuration of an intake without relays, as the least privileged role, and the process that runs it.
pub struct Front {
    pub process: Process,
    pub url: String,
    pub toml: String,
    pub tokens: PathBuf,
    _files: tempfile::TempDir,
}

/// What was answered.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: reqwest::header::HeaderMap,
    pub body: Value,
}

/// Makes the template `welcome` known, as a relay does that starts.
pub async fn welcome(database: &Database) -> tokio_postgres::Client {
    let owner = database.connect("postgres").await;
    owner.batch_execute("INSERT INTO outbox.template (name, relay) VALUES ('welcome', 'mail')").await.unwrap();
    owner
}

impl Front {
    /// Of this database; `more` is added to `[intake]`.
    pub async fn start(database: &Database, more: &str) -> Self {
        Self::of(&toml(database, "relay", None, ""), more, "info").await
    }

    /// With this beginning of a configuration, and a log of this level.
    pub async fn of(begins: &str, more: &str, level: &str) -> Self {
        let files = tempfile::tempdir().unwrap();
        let tokens = files.path().join("tokens");
        private(&tokens, &format!("{TOKEN}\n")).unwrap();
        let file = tokens.display();
        // A busy machine must not end calls whose end is no matter of the test.
        let patient = if more.contains("timeout") { "" } else { "timeout = \"60s\"" };
        let toml = format!("{begins}[intake]\nlisten = \"127.0.0.1:0\"\ntoken_file = \"{file}\"\n{more}\n{patient}\n");
        let process = Process::spawn_with(&toml, &["run"], &[("RUST_LOG", level.to_owned())]);
        let url = address(&process).await;
        Self { process, url, toml, tokens, _files: files }
    }

    /// The same again, after the process has ended: on another port.
    pub async fn restart(&mut self) {
        self.process = Process::spawn_with(&self.toml, &["run"], &[]);
        self.url = address(&self.process).await;
    }

    /// A request with the token.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        client().request(method, format!("{}{path}", self.url)).bearer_auth(TOKEN)
    }

    /// `POST /v1/requests`.
    pub async fn post(&self, body: &Value) -> Answer {
        answer(self.call(body)).await.expect("an answer")
    }

    /// The same, not sent yet.
    pub fn call(&self, body: &Value) -> RequestBuilder {
        with_json(self.request(Method::POST, "/v1/requests"), body)
    }

    /// `GET`.
    pub async fn get(&self, path: &str) -> Answer {
        answer(self.request(Method::GET, path)).await.expect("an answer")
    }
}

/// Where the process takes requests.
pub async fn address(process: &Process) -> String {
    let line = line(process, "outbox-relay starts").await;
    format!("http://{}", line["intake"].as_str().expect("an intake"))
}

/// With this body.
pub fn with_json(request: RequestBuilder, body: &Value) -> RequestBuilder {
    request.header("content-type", "application/json").body(body.to_string())
}

/// Sends it; none when nobody answered. A body that is no JSON is null.
pub async fn answer(request: RequestBuilder) -> Option<Answer> {
    let response = request.send().await.ok()?;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let text = response.text().await.ok()?;
    Some(Answer { status, headers, body: serde_json::from_str(&text).unwrap_or(Value::Null) })
}
