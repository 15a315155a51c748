//! Receivers that want to know who sends: a token of an issuer, a certificate.

use std::collections::BTreeSet;
use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use tempfile::TempDir;
use tokio_postgres::Client;

use crate::support::outside::{finding, json, standing};
use crate::support::{CLOCK, Database, PATIENCE, Process, bookings, database, eventually, outbox_relay, toml};

pub mod certificates;
mod refused;

/// What issuer and receiver share.
#[derive(Debug, Default)]
struct Shared {
    /// The client's secret.
    secret: String,
    /// Issuing fails.
    away: bool,
    /// How long a token says that it lasts.
    lasts: u64,
    given: usize,
    /// The receiver refuses every token.
    refuses: bool,
    /// It refuses this body, whatever token comes with it.
    refused_body: Option<String>,
    /// Tokens that the receiver accepts, and the last one that it has accepted.
    valid: BTreeSet<String>,
    shown: String,
    /// The questions' forms.
    forms: Vec<String>,
    /// Bodies that were accepted, and how many requests were refused.
    accepted: Vec<String>,
    refused: usize,
}

type Inside = Arc<Mutex<Shared>>;

/// An issuer of tokens at `/token`, and a receiver of messages at `/rows`, which accepts the issuer's tokens only.
struct Stage {
    database: Database,
    owner: Client,
    folder: TempDir,
    port: u16,
    inside: Inside,
}

async fn token(State(inside): State<Inside>, headers: HeaderMap, form: String) -> (StatusCode, String) {
    let mut inside = inside.lock().unwrap();
    inside.forms.push(form);
    if inside.away {
        return (StatusCode::SERVICE_UNAVAILABLE, String::new());
    }
    // RFC 6749, section 2.3.1: id and secret are encoded as in a form before they become Basic.
    let pair = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, format!("relay%3A1:{}", inside.secret));
    let by_post = format!("&client_id=relay%3A1&client_secret={}", inside.secret);
    let is_known = match headers.get("authorization") {
        Some(basic) => *basic == format!("Basic {pair}"),
        None => inside.forms.last().is_some_and(|form| form.ends_with(&by_post)),
    };
    if !is_known {
        let said = r#"{"error":"invalid_client","error_description":"the secret s3cret is wrong"}"#;
        return (StatusCode::UNAUTHORIZED, said.to_owned());
    }
    inside.given += 1;
    let token = format!("token-{}", inside.given);
    inside.valid.insert(token.clone());
    let lasts = inside.lasts;
    (StatusCode::OK, format!(r#"{{"access_token":"{token}","token_type":"Bearer","expires_in":{lasts}}}"#))
}

async fn rows(State(inside): State<Inside>, headers: HeaderMap, body: String) -> StatusCode {
    let mut inside = inside.lock().unwrap();
    let shown = headers.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let shown = shown.strip_prefix("Bearer ").filter(|token| inside.valid.contains(*token));
    let is_taken = !inside.refuses && inside.refused_body.as_ref() != Some(&body);
    if let Some(token) = shown.filter(|_| is_taken) {
        token.clone_into(&mut inside.shown);
        inside.accepted.push(body);
        StatusCode::OK
    } else {
        inside.refused += 1;
        StatusCode::UNAUTHORIZED
    }
}

impl Stage {
    async fn start(lasts: u64) -> Self {
        let database = database().await;
        let owner = bookings(&database, CLOCK).await;
        let inside = Arc::new(Mutex::new(Shared { secret: "s3cret".to_owned(), lasts, ..Shared::default() }));
        let router = Router::new().route("/token", post(token)).route("/rows", post(rows));
        let router = router.with_state(Arc::clone(&inside));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move { axum::serve(listener, router).await });
        let stage = Self { database, owner, folder: tempfile::tempdir().unwrap(), port, inside };
        stage.secret("s3cret\n");
        stage
    }

    fn secret(&self, text: &str) {
        fs::write(self.folder.path().join("secret"), text).unwrap();
    }

    fn toml(&self, source: &str, more: &str) -> String {
        let (port, folder) = (self.port, self.folder.path().display());
        let relay = format!(
            "[[relay]]\nname = \"h\"\n{source}\n[relay.sink.http]\nurl = \"http://127.0.0.1:{port}/rows\"\nbody = \"{{{{ payload }}}}\"\n\
             [relay.sink.http.oauth2]\ntoken_url = \"http://127.0.0.1:{port}/token\"\nclient_id = \"relay:1\"\n\
             client_secret_file = \"{folder}/secret\"\n{more}"
        );
        toml(&self.database, "relay", None, &relay)
    }

    fn stream(&self) -> String {
        self.toml(
            "start = \"beginning\"\n[relay.source.stream]\ntable = \"public.bookings\"",
            "scope = \"rows write\"\n",
        )
    }

    async fn book(&self, payload: usize) {
        self.owner.execute("INSERT INTO bookings (payload) VALUES ($1::text)", &[&payload.to_string()]).await.unwrap();
    }

    fn see<T>(&self, read: impl FnOnce(&mut Shared) -> T) -> T {
        read(&mut self.inside.lock().unwrap())
    }

    /// The code of the relay's error, if it has one.
    async fn code(&self) -> Option<String> {
        standing(&self.owner, "h").await.and_then(|(_, _, _, error)| Some(error["code"].as_str()?.to_owned()))
    }

    async fn has_code(&self, code: &str) {
        eventually(PATIENCE * 2, async || self.code().await.as_deref() == Some(code)).await;
    }
}

// Guarantee: secrets.oauth2
#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_renewed_and_rows_of_revoked_ones_are_sent_with_the_next() {
    let stage = Stage::start(2).await;
    let text = stage.stream();
    let process = Process::spawn(&text, &["run"]);
    let mut rows = 0;
    let mut book = async |count: usize| {
        for _ in 0..count {
            rows += 1;
            stage.book(rows).await;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    // Until it has been renewed, several times.
    while stage.see(|inside| inside.given) < 3 {
        book(10).await;
    }
    // A token that is refused before it was accepted once would halt the relay.
    let revoke = |inside: &mut Shared| {
        let is_in_use = inside.shown == format!("token-{}", inside.given);
        if is_in_use {
            inside.valid.clear();
        }
        is_in_use
    };
    while !stage.see(revoke) {
        book(1).await;
    }
    book(10).await;
    eventually(PATIENCE * 2, async || stage.see(|inside| inside.refused) > 0).await;
    // While the issuer is away, the token is used until it ends; then rows wait.
    stage.see(|inside| inside.away = true);
    eventually(PATIENCE * 2, async || {
        book(1).await;
        stage.code().await.as_deref() == Some("token_unavailable")
    })
    .await;
    stage.see(|inside| inside.away = false);
    book(10).await;
    let all: Vec<String> = (1..=rows).map(|row| row.to_string()).collect();
    eventually(PATIENCE * 3, async || stage.see(|inside| inside.accepted.len()) >= all.len()).await;
    assert_eq!(stage.see(|inside| inside.accepted.clone()), all);
    assert!(
        stage.see(|inside| inside.forms.iter().all(|form| form == "grant_type=client_credentials&scope=rows%20write"))
    );
    let log = process.log();
    assert!(!log.contains("s3cret") && !log.contains("token-1"), "{log}");
    assert!(!log.contains("relay halted"), "{log}");
}

// Guarantee: secrets.oauth2
#[tokio::test(flavor = "multi_thread")]
async fn row_that_is_refused_with_every_token_halts_although_others_are_accepted() {
    let stage = Stage::start(3600).await;
    stage.see(|inside| inside.refused_body = Some("3".to_owned()));
    let lanes = "[relay.turn]\nin_flight = 10\nlane = \"payload\"\n";
    let text = format!("{}{lanes}", stage.stream());
    let _process = Process::spawn(&text, &["run"]);
    let mut rows = 0;
    eventually(PATIENCE * 4, async || {
        rows += 1;
        stage.book(rows).await;
        stage.code().await.as_deref() == Some("http_401")
    })
    .await;
    assert!(standing(&stage.owner, "h").await.unwrap().1, "halted");
    assert!(stage.see(|inside| inside.given) <= 3, "no token after token is thrown away");
}

// Guarantee: secrets.oauth2
#[tokio::test(flavor = "multi_thread")]
async fn refused_secret_halts_until_its_file_is_corrected() {
    let stage = Stage::start(3600).await;
    stage.secret("wr0ng");
    let text = stage.stream();
    let (code, out, _) = outbox_relay(&text, &["check", "-o", "json"]).await;
    let document = json(&out);
    let found = finding(&document, "token_refused").unwrap_or_else(|| panic!("{out}"));
    println!("{found}");
    assert_eq!((code, &found["level"]), (Some(3), &"error".into()), "{out}");
    stage.book(1).await;
    let process = Process::spawn(&text, &["run"]);
    stage.has_code("token_refused").await;
    let (_, halted, _, error) = standing(&stage.owner, "h").await.unwrap();
    println!("{error}");
    let message = error["message"].as_str().unwrap();
    assert!(halted && message.ends_with("it answered 401 (invalid_client)"), "{error}");
    assert_eq!(stage.see(|inside| inside.refused), 0, "nothing is sent without a token");
    stage.secret("s3cret");
    eventually(PATIENCE * 3, async || stage.see(|inside| inside.accepted == ["1"])).await;
    let (code, out, _) = outbox_relay(&text, &["check", "-o", "json"]).await;
    assert!(code != Some(3) && finding(&json(&out), "token").is_some(), "{out}");
    let elsewhere =
        text.replace(&format!("url = \"http://127.0.0.1:{}/rows\"", stage.port), "url = \"http://receiver.invalid/\"");
    let (_, out, _) = outbox_relay(&elsewhere, &["check", "-o", "json"]).await;
    assert!(finding(&json(&out), "token_plain_text").is_some(), "{out}");
    // A receiver that takes no token of this issuer any more halts as for any credentials, after one new token.
    let given = stage.see(|inside| {
        inside.refuses = true;
        inside.given
    });
    stage.book(2).await;
    stage.has_code("http_401").await;
    assert!(standing(&stage.owner, "h").await.unwrap().1, "halted");
    assert_eq!(stage.see(|inside| (inside.refused, inside.given - given)), (2, 1));
    let log = process.log();
    assert!(!log.contains("wr0ng") && !log.contains("s3cret"), "{log}");
}

// Guarantee: secrets.oauth2
#[tokio::test(flavor = "multi_thread")]
async fn requests_are_sent_with_tokens_too() {
    let stage = Stage::start(3600).await;
    let text = stage.toml("[relay.source.requests]\ntemplates = [\"t\"]", "client_auth = \"post\"\n");
    let process = Process::spawn(&text, &["run"]);
    let ask = "SELECT outbox.enqueue_once($1, 'u', 't', jsonb_build_object('payload', $1::text))";
    // Its template is known as soon as it runs.
    eventually(PATIENCE, async || stage.owner.execute(ask, &[&"a"]).await.is_ok()).await;
    stage.owner.execute(ask, &[&"b"]).await.unwrap();
    eventually(PATIENCE * 2, async || stage.see(|inside| inside.accepted.len()) == 2).await;
    stage.see(|inside| inside.valid.clear());
    stage.owner.execute(ask, &[&"c"]).await.unwrap();
    eventually(PATIENCE * 2, async || stage.see(|inside| inside.accepted.len()) == 3).await;
    let accepted: BTreeSet<String> = stage.see(|inside| inside.accepted.iter().cloned().collect());
    assert_eq!(accepted, ["a", "b", "c"].map(str::to_owned).into(), "{}", process.log());
}
