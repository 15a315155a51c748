//! Mail servers that are out of step, garrulous or none at all.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::support::outside::standing;
use crate::support::post::Stage;
use crate::support::{PATIENCE, Process, eventually};

/// What a server says, instead of the usual answer, to a line of its connection of this number, when it has so many mails. The
/// greeting answers an empty line, and the content is the line `.`.
type Script = fn(connection: usize, mails: usize, line: &str) -> Option<Vec<u8>>;

#[derive(Clone)]
struct Server {
    port: u16,
    script: Script,
    /// From then on it answers as servers do.
    sound: Arc<AtomicBool>,
    ids: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = Self { port, script, sound: Arc::default(), ids: Arc::default() };
        let there = server.clone();
        tokio::spawn(async move {
            for connection in 1.. {
                let Ok((stream, _)) = listener.accept().await else { return };
                let there = there.clone();
                tokio::spawn(async move { there.serve(stream, connection).await });
            }
        });
        server
    }

    async fn serve(&self, stream: TcpStream, connection: usize) -> io::Result<()> {
        let mut stream = BufReader::new(stream);
        let (mut line, mut content) = (String::new(), None::<String>);
        loop {
            if content.is_some() && line != "." {
                content.get_or_insert_default().extend([line.as_str(), "\n"]);
            } else {
                let id = content.take().and_then(|content| message_id(&content));
                self.ids.lock().unwrap().extend(id);
                let answer = self.answer(connection, &line);
                content = answer.starts_with(b"354").then(String::new);
                stream.write_all(&answer).await?;
            }
            line.clear();
            if stream.read_line(&mut line).await? == 0 {
                return Ok(());
            }
            line.truncate(line.trim_end_matches(['\r', '\n']).len());
        }
    }

    fn answer(&self, connection: usize, line: &str) -> Vec<u8> {
        let usual = match line.split(' ').next().unwrap() {
            "" => "220 mail.example.com\r\n",
            "DATA" => "354 go ahead\r\n",
            _ => "250 2.0.0 fine\r\n",
        };
        let said = if self.sound.load(SeqCst) { None } else { (self.script)(connection, self.ids().len(), line) };
        said.unwrap_or_else(|| usual.as_bytes().to_vec())
    }

    /// The Message-IDs of what it has, in order.
    fn ids(&self) -> Vec<String> {
        self.ids.lock().unwrap().clone()
    }
}

fn message_id(content: &str) -> Option<String> {
    content.lines().find_map(|line| line.strip_prefix("Message-ID: ")).map(str::to_owned)
}

fn of_rows(relay: &str, rows: impl IntoIterator<Item = u32>) -> Vec<String> {
    rows.into_iter().map(|row| format!("<{relay}/{row}@example.com>")).collect()
}

/// Row by row in order, what was sent again directly behind itself counted once.
fn once_each(server: &Server) -> Vec<String> {
    let mut ids = server.ids();
    ids.dedup();
    ids
}

fn says(does: bool, what: &[u8]) -> Option<Vec<u8>> {
    does.then(|| what.to_vec())
}

// Guarantee: failures.smtp-step
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_of_the_sender_that_is_read_out_of_step_makes_no_row_a_dead_letter() {
    let stage = Stage::start().await;
    for name in ["Ann", "Bob", "Eve"] {
        stage.add(name, "someone@example.com").await;
    }
    // It answers its first mail twice, and takes no further sender on that connection.
    let server = Server::start(|connection, mails, line| match line {
        "." if mails == 1 => says(true, b"250 taken\r\n250 and more\r\n"),
        line => says(connection == 1 && mails > 0 && line.starts_with("MAIL"), b"550 5.1.8 no such sender\r\n"),
    })
    .await;
    let relay = stage.relay_with("mail", server.port, "security = \"none\"");
    let text = stage.toml(&relay.replace("start =", "on_poison = \"dead_letter\"\nstart ="));
    let _process = Process::spawn(&text, &["run"]);
    let rows = of_rows("mail", 1..=3);
    let letters = || async {
        let sql = "SELECT count(*) FROM outbox.dead_letter";
        stage.owner.query_one(sql, &[]).await.unwrap().get::<_, i64>(0)
    };
    eventually(PATIENCE * 2, || async { server.ids().len() >= rows.len() || letters().await > 0 }).await;
    assert_eq!((letters().await, server.ids()), (0, rows));
}

/// Kinds of servers, and how the first attempt with each ends.
const KINDS: [(&str, &str, Script); 9] = [
    ("web", "smtp_broken", |_, _, line| says(line.is_empty(), b"HTTP/1.1 400 Bad Request\r\n\r\n")),
    ("endless", "smtp_broken", |_, _, line| says(line.starts_with("EHLO"), &b"250-more\r\n".repeat(1_000))),
    ("long", "smtp_broken", |_, _, line| says(line.starts_with("EHLO"), &b"2".repeat(1 << 20))),
    ("nul", "smtp_broken", |_, _, line| says(line.starts_with("MAIL"), b"250\0fine\r\n")),
    ("two", "smtp_broken", |_, _, line| says(line.starts_with("MAIL"), b"250 fine\r\n550 5.1.1 no\r\n")),
    ("lost", "smtp_rcpt_503", |_, _, line| says(line.starts_with("RCPT"), b"503 5.5.1 MAIL first\r\n")),
    ("early", "smtp_broken", |_, _, line| says(line == "DATA", b"354 go ahead\r\n250 taken\r\n")),
    ("half", "smtp_timeout_after_data", |_, _, line| says(line == ".", b"25")),
    ("other", "smtp_broken_after_data", |_, _, line| says(line == ".", b"220 mail.example.com\r\n")),
];

// Guarantee: failures.smtp-answers
#[tokio::test(flavor = "multi_thread")]
async fn whatever_a_mail_server_says_instead_of_answers_is_retried_and_costs_no_row() {
    let stage = Stage::start().await;
    stage.add("Ann", "ann@example.com").await;
    stage.add("Bob", "bob@example.com").await;
    let (mut relays, mut servers) = (String::new(), Vec::new());
    for (name, code, script) in KINDS {
        let server = Server::start(script).await;
        relays.push_str(&stage.relay_with(name, server.port, "security = \"none\"\ntimeout = \"2s\""));
        servers.push((name, code, server));
    }
    let _process = Process::spawn(&stage.toml(&relays), &["run"]);
    for (name, code, _) in &servers {
        let failed = || async { standing(&stage.owner, name).await.is_some_and(|(.., error)| error["code"] == *code) };
        eventually(PATIENCE * 3, failed).await;
        let (state, is_halted, id, error) = standing(&stage.owner, name).await.unwrap();
        assert_eq!((state.as_str(), is_halted, id.as_deref()), ("backing_off", false, Some("1")), "{name}: {error}");
    }
    for (name, _, server) in &servers {
        server.sound.store(true, SeqCst);
        eventually(PATIENCE * 3, || async { once_each(server) == of_rows(name, 1..=2) }).await;
    }
}
