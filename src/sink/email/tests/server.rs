//! A mail server that answers each line as a test says.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// What a scripted server does at a line, instead of an answer.
pub(super) const HANG: &str = "hang";
pub(super) const CLOSE: &str = "close";
pub(super) const RESET: &str = "reset";
/// The usual answer, after [`PAUSE`].
pub(super) const SLOW: &str = "slow";
pub(super) const PAUSE: Duration = Duration::from_millis(800);
/// Between two parts of an answer: the second comes [`MOMENT`] after the first.
const LATER: char = '|';
const MOMENT: Duration = Duration::from_millis(5);

/// What a scripted server has seen: every line, contents left out; and how many connections.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    lines: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
}

impl Seen {
    pub(super) fn lines(&self) -> Vec<String> {
        self.lines.lock().expect("not poisoned").clone()
    }

    pub(super) fn connections(&self) -> usize {
        self.connections.load(SeqCst)
    }

    pub(super) fn count(&self, verb: &str) -> usize {
        self.lines().iter().filter(|line| line.starts_with(verb)).count()
    }
}

pub(super) type Script = fn(&str) -> Option<&'static str>;

/// A server that answers each line as `script` says, else as servers do; its greeting is the answer to the empty line, and
/// that to the content the one to `.`.
pub(super) async fn server(script: Script) -> (u16, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let port = listener.local_addr().expect("bound").port();
    let seen = Seen::default();
    let there = seen.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            there.connections.fetch_add(1, SeqCst);
            tokio::spawn(serve(stream, script, there.clone()));
        }
    });
    (port, seen)
}

async fn serve(stream: TcpStream, script: Script, seen: Seen) {
    let mut stream = BufReader::new(stream);
    let (mut line, mut in_content) = (String::new(), false);
    loop {
        if !in_content || line == "." {
            seen.lines.lock().expect("not poisoned").push(line.clone());
            let usual = match line.split(' ').next().unwrap_or_default() {
                "" => "220 mail.example.com",
                "EHLO" => "250-mail.example.com\r\n250-SIZE 100000\r\n250 AUTH PLAIN",
                "AUTH" => "235 2.7.0 yes",
                "DATA" => "354 go ahead",
                _ => "250 2.0.0 fine",
            };
            let answer = script(&line).unwrap_or(usual);
            in_content = answer.starts_with("354");
            match answer {
                HANG => std::future::pending().await,
                CLOSE => return,
                RESET => return stream.get_ref().set_zero_linger().expect("sets"),
                SLOW => {
                    tokio::time::sleep(PAUSE).await;
                    stream.write_all(format!("{usual}\r\n").as_bytes()).await.unwrap_or_default();
                }
                answer => {
                    for (number, part) in answer.split(LATER).enumerate() {
                        if number > 0 {
                            tokio::time::sleep(MOMENT).await;
                        }
                        if part == CLOSE {
                            return;
                        }
                        stream.write_all(format!("{part}\r\n").as_bytes()).await.unwrap_or_default();
                    }
                }
            }
        }
        line.clear();
        match stream.read_line(&mut line).await {
            Ok(1..) => line = line.trim_end().to_owned(),
            Ok(0) | Err(_) => return,
        }
    }
}
