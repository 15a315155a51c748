//! A mail server: aiosmtpd, which takes mails and keeps a record of each, and can be told to fall silent or to break off
//! when it has one.
//!
//! It speaks STARTTLS, TLS and AUTH. A mail is recorded as Python's own library reads it, so that nobody judges it who had
//! a part in writing it.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;

const PROGRAM: &str = include_str!("smtp/server.py");
/// The distribution's, which has its packages, before any other.
const PYTHONS: [&str; 2] = ["/usr/bin/python3", "python3"];
const PATIENCE: Duration = Duration::from_secs(30);

/// What the server is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// How the way to it is protected.
    pub security: Security,
    /// Files of its certificate and key.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// The one user's name and password; none, and everybody may send.
    pub user: Option<(String, String)>,
    /// The largest mail that it takes.
    pub size_limit: Option<usize>,
    /// Ways to sign in that it does not offer, of `PLAIN` and `LOGIN`.
    pub without: Vec<String>,
}

/// How the way to the server is protected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Security {
    /// Not at all.
    #[default]
    None,
    /// By STARTTLS, without which it takes no mail.
    StartTls,
    /// By TLS from the first byte.
    Tls,
}

/// What the server does with a mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// Records it and answers 250.
    Accept,
    /// Records it and never answers.
    Hang,
    /// Records it and answers 250 after this long.
    Slow(Duration),
    /// Records it and resets the connection.
    Reset,
    /// Records nothing and answers this line to the content.
    Refuse(&'static str),
    /// Answers this line to the receiver's address.
    RefuseReceiver(&'static str),
}

/// A mail that the server has.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Received {
    /// The sender of the envelope.
    pub from: String,
    /// The receivers of the envelope.
    pub to: Vec<String>,
    /// Who has signed in.
    pub user: Option<String>,
    /// Whether it came through TLS.
    pub encrypted: bool,
    /// What the sender calls itself.
    pub hello: String,
    /// Names and decoded values, in order.
    pub headers: Vec<(String, String)>,
    /// The type of the whole.
    pub kind: String,
    /// Types and decoded texts of the parts, in order.
    pub parts: Vec<(String, String)>,
    /// As it came, in base64.
    raw: String,
}

impl Received {
    /// The values of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Vec<&str> {
        let named = self.headers.iter().filter(|(each, _)| each.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_str()).collect()
    }

    /// The bytes as they came.
    #[must_use]
    pub fn raw(&self) -> Vec<u8> {
        STANDARD.decode(&self.raw).unwrap_or_default()
    }
}

/// What the server has told.
#[derive(Clone, Debug, Default)]
struct Record {
    port: Option<u16>,
    mails: Vec<Received>,
    connections: usize,
    told: usize,
    ended: bool,
}

/// A mail server; it ends when dropped.
#[derive(Debug)]
pub struct SmtpServer {
    port: u16,
    record: watch::Receiver<Record>,
    orders: Mutex<ChildStdin>,
    reader: JoinHandle<()>,
    /// Killed when dropped.
    _child: Child,
}

impl SmtpServer {
    /// Starts it on the loopback interface.
    ///
    /// # Errors
    /// When Python or its package is missing, or no port can be opened.
    pub async fn start(options: &Options) -> anyhow::Result<Self> {
        let security = match options.security {
            Security::None => "none",
            Security::StartTls => "starttls",
            Security::Tls => "tls",
        };
        let (certificate, key) = options.certificate.clone().unzip();
        let options = json!({
            "security": security, "certificate": certificate, "key": key, "user": options.user,
            "size_limit": options.size_limit, "without": options.without,
        });
        let mut child = Command::new(python().await?)
            .args(["-W", "ignore", "-c", PROGRAM, &options.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("The mail server cannot be started")?;
        let orders = child.stdin.take().context("No way to tell the mail server anything")?;
        let lines = BufReader::new(child.stdout.take().context("No way to hear the mail server")?).lines();
        let (writer, mut record) = watch::channel(Record::default());
        let reader = tokio::spawn(listen(lines, writer));
        let ready = record.wait_for(|record| record.port.is_some() || record.ended);
        let port = tokio::time::timeout(PATIENCE, ready).await.context("The mail server does not start")??.port;
        let Some(port) = port else { bail!("The mail server ended at once: see above") };
        Ok(Self { port, record, orders: Mutex::new(orders), reader, _child: child })
    }

    /// Its port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Every mail so far, in order.
    #[must_use]
    pub fn received(&self) -> Vec<Received> {
        self.record.borrow().mails.clone()
    }

    /// How many connections have been opened so far.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.record.borrow().connections
    }

    /// What becomes of mails that come when this has returned.
    ///
    /// # Errors
    /// When the server is gone.
    pub async fn behave(&self, behaviour: Behaviour) -> anyhow::Result<()> {
        self.order(&match behaviour {
            Behaviour::Accept => json!({ "do": "accept" }),
            Behaviour::Hang => json!({ "do": "hang" }),
            Behaviour::Slow(pause) => json!({ "do": "accept", "pause": pause.as_secs_f64() }),
            Behaviour::Reset => json!({ "do": "reset" }),
            Behaviour::Refuse(reply) => json!({ "do": "refuse", "reply": reply }),
            Behaviour::RefuseReceiver(reply) => json!({ "do": "accept", "rcpt": reply }),
        })
        .await
    }

    /// Closes all connections, as a server does with idle ones.
    ///
    /// # Errors
    /// When the server is gone.
    pub async fn close_connections(&self) -> anyhow::Result<()> {
        self.order(&json!({ "do": "close" })).await
    }

    async fn order(&self, order: &Value) -> anyhow::Result<()> {
        let mut orders = self.orders.lock().await;
        let before = self.record.borrow().told;
        orders.write_all(format!("{order}\n").as_bytes()).await?;
        let mut record = self.record.clone();
        let obeyed = record.wait_for(|record| record.told > before || record.ended);
        let ended = tokio::time::timeout(PATIENCE, obeyed).await.context("The mail server does not obey")??.ended;
        anyhow::ensure!(!ended, "The mail server has ended");
        Ok(())
    }
}

impl Drop for SmtpServer {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

async fn listen(mut lines: Lines<BufReader<ChildStdout>>, record: watch::Sender<Record>) {
    while let Ok(Some(line)) = lines.next_line().await {
        let Ok(event) = serde_json::from_str::<Value>(&line) else {
            tracing::error!(line, "the mail server said what is not understood");
            continue;
        };
        record.send_modify(|record| note(record, &event));
    }
    record.send_modify(|record| record.ended = true);
}

fn note(record: &mut Record, event: &Value) {
    if let Some(port) = event["port"].as_u64() {
        record.port = u16::try_from(port).ok();
    }
    record.connections += usize::from(event["connected"] == true);
    record.told += usize::from(event["told"] == true);
    if event["mail"].is_object() {
        match Received::deserialize(&event["mail"]) {
            Ok(mail) => record.mails.push(mail),
            Err(error) => tracing::error!(%error, "the mail server has a mail that is not understood"),
        }
    }
}

/// The Python that has the server's package.
async fn python() -> anyhow::Result<&'static str> {
    for python in PYTHONS {
        let asked = Command::new(python).args(["-c", "import aiosmtpd"]).stderr(Stdio::null()).status().await;
        if asked.is_ok_and(|status| status.success()) {
            return Ok(python);
        }
    }
    bail!("Python's aiosmtpd is missing: `make deps-test` installs it (Debian: python3-aiosmtpd)")
}
