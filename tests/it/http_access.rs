//! Receivers that want to know who sends: a token of an issuer, a certificate.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use tempfile::TempDir;
use tokio_postgres::Client;

use crate::support::outside::{finding, json, standing};
use crate::support::tls::{Authority, Files, Showing};
use crate::support::{CLOCK, Database, PATIENCE, Process, bookings, database, eventually, outbox_relay, toml};

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

/// Answers clients that show a certificate of the authority, and prints its common name.
const RECEIVER: &str = r#"
import http.server, ssl, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        subject = dict(pair[0] for pair in self.connection.getpeercert()["subject"])
        print(subject["commonName"], flush=True)
        self.send_response(204)
        self.send_header("connection", "close")
        self.end_headers()
    def log_message(self, *words):
        pass
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
context.load_verify_locations(sys.argv[3])
context.verify_mode = ssl.CERT_REQUIRED
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
"#;

struct Receiver {
    port: u16,
    shown: Arc<Mutex<Vec<String>>>,
    _process: tokio::process::Child,
}

impl Receiver {
    async fn start(authority: &Authority) -> Self {
        use tokio::io::AsyncBufReadExt as _;
        let Files { certificate, key } = authority.issue(Showing::Right);
        let mut command = tokio::process::Command::new("python3");
        command.args(["-c", RECEIVER]).args([&certificate, &key]).arg(authority.file());
        let mut process = command.stdout(std::process::Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let mut lines = tokio::io::BufReader::new(process.stdout.take().unwrap()).lines();
        let port = lines.next_line().await.unwrap().expect("a port").parse().unwrap();
        let shown = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&shown);
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                seen.lock().unwrap().push(line);
            }
        });
        Self { port, shown, _process: process }
    }

    fn shown(&self) -> Vec<String> {
        self.shown.lock().unwrap().clone()
    }
}

// Guarantee: secrets.own-certificate
#[tokio::test(flavor = "multi_thread")]
async fn http_receiver_is_shown_the_certificate_that_stands_in_the_files_now() {
    let (database, authority) = (database().await, Authority::new());
    let owner = bookings(&database, CLOCK).await;
    let receiver = Receiver::start(&authority).await;
    let used = tempfile::tempdir().unwrap();
    let put = |files: &Files| {
        let copy = |from: &Path, to: &str| {
            let new = used.path().join("new");
            fs::copy(from, &new).unwrap();
            fs::rename(new, used.path().join(to)).unwrap();
        };
        copy(&files.certificate, "crt");
        copy(&files.key, "key");
    };
    let relay = |own: &str| {
        let (port, ca) = (receiver.port, authority.file().display().to_string());
        let relay = format!(
            "[[relay]]\nname = \"h\"\nstart = \"beginning\"\n[relay.source.stream]\ntable = \"public.bookings\"\n[relay.sink.http]\n\
             url = \"https://127.0.0.1:{port}/\"\nca_file = \"{ca}\"\n{own}"
        );
        toml(&database, "relay", None, &relay)
    };
    let book = async || owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    let error = async |code: &str| {
        let is_there = async || standing(&owner, "h").await.is_some_and(|(_, _, _, error)| error["code"] == code);
        eventually(PATIENCE * 2, is_there).await;
        standing(&owner, "h").await.unwrap().3
    };
    book().await;
    let without = Process::spawn(&relay(""), &["run"]);
    // By TLS 1.3 the connection is there before the receiver refuses it.
    let refused = error("client_certificate_refused").await;
    println!("{refused}");
    assert!(refused["hint"].as_str().unwrap().contains("cert_file"), "{refused}");
    drop(without);
    assert!(receiver.shown().is_empty());

    put(&authority.issue_client("first", 2));
    let folder = used.path().display();
    let text = relay(&format!("cert_file = \"{folder}/crt\"\nkey_file = \"{folder}/key\"\n"));
    let process = Process::spawn(&text, &["run"]);
    eventually(PATIENCE * 3, async || receiver.shown() == ["first"]).await;
    put(&authority.issue_client("second", 2));
    book().await;
    eventually(PATIENCE * 3, async || receiver.shown() == ["first", "second"]).await;
    // The key is not the certificate's: nothing is sent until it is.
    fs::copy(&authority.issue_client("third", 2).certificate, used.path().join("crt")).unwrap();
    book().await;
    let unusable = error("certificate_unusable").await;
    println!("{unusable}");
    assert_eq!(unusable["class"], "retry", "{unusable}");
    let (code, out, _) = outbox_relay(&text, &["check", "-o", "json"]).await;
    assert_eq!(code, Some(3), "{out}");
    assert!(finding(&json(&out), "certificate_unusable").is_some(), "{out}");
    put(&authority.issue_client("third", 2));
    eventually(PATIENCE * 4, async || receiver.shown() == ["first", "second", "third"]).await;
    assert!(!process.log().contains("PRIVATE KEY"));
}

// Guarantee: secrets.certificate-end
#[tokio::test(flavor = "multi_thread")]
async fn check_names_own_certificates_that_have_ended_or_end_soon() {
    let (database, authority) = (database().await, Authority::new());
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    for (days, exit, code, words) in
        [(-1, 3, "certificate_expired", "has ended at 2"), (2, 0, "certificate_expires", "in 1 days"), (30, 0, "", "")]
    {
        let Files { certificate, key } = authority.issue_client("relay", days);
        let (certificate, key) = (certificate.display(), key.display());
        let relay = format!(
            "[kafka.properties]\n\"ssl.certificate.location\" = \"{certificate}\"\n\
             [[relay]]\nname = \"h\"\nstart = \"beginning\"\n[relay.source.stream]\ntable = \"public.bookings\"\n\
             [relay.sink.http]\nurl = \"https://127.0.0.1:1/\"\ncert_file = \"{certificate}\"\nkey_file = \"{key}\"\n"
        );
        let text = toml(&database, "relay", Some("127.0.0.1:1"), &relay);
        let (found, out, log) = outbox_relay(&text, &["check", "-o", "json"]).await;
        assert_eq!(found, Some(exit), "{out}{log}");
        let findings = json(&out)["findings"].as_array().unwrap().clone();
        let of = |words: &str| findings.iter().any(|it| it["message"].as_str().unwrap().contains(words));
        for what in ["[relay.sink.http] cert_file (", "[kafka.properties] ssl.certificate.location ("] {
            assert_eq!(of(what), !code.is_empty(), "{days} days: {what} in {out}");
        }
        if let Some(finding) = finding(&json(&out), code) {
            assert!(finding["message"].as_str().unwrap().contains(words), "{finding}");
            assert!(finding["fix_setting"].as_str().unwrap().contains("a new certificate and its key"), "{finding}");
        }
        assert_eq!(finding(&json(&out), code).is_some(), !code.is_empty(), "{out}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn access_that_cannot_work_is_refused_by_name() {
    let cases = [
        ("cert_file = \"/c\"", "a certificate without its key"),
        ("key_file = \"/k\"", "a key without its certificate"),
        (
            "headers = { authorization = \"x\" }\noauth2 = { token_url = \"https://i/t\", client_id = \"c\", client_secret_file = \"/s\" }",
            "given twice",
        ),
        ("oauth2 = { token_url = \"http://i/t\", client_id = \"c\", client_secret_file = \"/s\" }", "in clear"),
        (
            "oauth2 = { token_url = \"https://u:p@i/t\", client_id = \"c\", client_secret_file = \"/s\" }",
            "credentials in a URL",
        ),
        ("oauth2 = { token_url = \"https://i/t\", client_id = \"c\" }", "client_secret_file"),
        (
            "oauth2 = { token_url = \"https://i/t?secret=x\", client_id = \"c\", client_secret_file = \"/s\" }",
            "a query or a fragment",
        ),
    ];
    for (keys, word) in cases {
        let text = format!(
            "[postgres]\nurl = \"postgresql://u@h/d?sslmode=disable\"\n[[relay]]\nname = \"h\"\n[relay.source.stream]\ntable = \"public.b\"\n\
             [relay.sink.http]\nurl = \"https://r/\"\n{keys}\n"
        );
        let (code, out, log) = outbox_relay(&text, &["config", "show", "--redacted"]).await;
        assert!(code == Some(2) && log.contains(word), "{keys}: {code:?} {out}{log}");
        assert!(!log.contains("u:p@"), "{log}");
    }
}
