//! Receivers that ask for a certificate, which the relay shows.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::support::outside::{finding, json, standing};
use crate::support::tls::{Authority, Files, Showing};
use crate::support::{CLOCK, PATIENCE, Process, bookings, database, eventually, outbox_relay, toml};

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

/// See [`RECEIVER`]: each request prints whose certificate it came with.
pub struct Receiver {
    pub port: u16,
    shown: Arc<Mutex<Vec<String>>>,
    _process: tokio::process::Child,
}

impl Receiver {
    pub async fn start(authority: &Authority) -> Self {
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

    pub fn shown(&self) -> Vec<String> {
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
