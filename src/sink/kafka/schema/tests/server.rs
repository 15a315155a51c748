//! A registry whose answers a test writes down, path by path.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

#[derive(Debug, Default)]
pub(super) struct State {
    /// Status and body of the answer to `METHOD PATH`.
    pub(super) answers: HashMap<String, (u16, String)>,
    /// What was asked: `METHOD PATH`, with the header Authorization and the body behind it.
    pub(super) asked: Vec<(String, String, String)>,
    /// Questions are read and not answered.
    pub(super) hangs: bool,
}

/// Ends with the test.
pub(super) struct Server {
    pub(super) url: String,
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
        let url = format!("http://{}/api", listener.local_addr().expect("bound"));
        let state = Arc::<Mutex<State>>::default();
        let shared = Arc::clone(&state);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&shared)));
            }
        });
        Self { url, state, task }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("not poisoned")
    }

    pub(super) fn answer(&self, question: &str, status: u16, body: &str) {
        self.state().answers.insert(question.to_owned(), (status, body.to_owned()));
    }

    /// The latest schema of a subject.
    pub(super) fn latest(&self, subject: &str, id: u32, schema: &str) {
        let body = serde_json::json!({ "subject": subject, "version": id, "id": id, "schema": schema });
        self.answer(&format!("GET /api/subjects/{subject}/versions/latest"), 200, &body.to_string());
    }

    /// How many times it was asked.
    pub(super) fn asked(&self) -> usize {
        self.state().asked.len()
    }
}

/// One question of a connection, which ends with the answer.
async fn serve(mut stream: TcpStream, state: Arc<Mutex<State>>) {
    let Some((head, body)) = read(&mut stream).await else { return };
    let question = head.split(' ').take(2).collect::<Vec<_>>().join(" ");
    let authorization = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("authorization").then(|| value.to_owned())
    });
    let answer = {
        let mut state = state.lock().expect("not poisoned");
        state.asked.push((question.clone(), authorization.unwrap_or_default(), body));
        if state.hangs { None } else { Some(state.answers.get(&question).cloned()) }
    };
    let Some(answer) = answer else { return std::future::pending().await };
    let not_found = || (404, "{\"error_code\":40401,\"message\":\"Subject not found.\"}".to_owned());
    let (status, body) = answer.unwrap_or_else(not_found);
    // No answer at all.
    if status == 0 {
        return;
    }
    let head = format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    // A client that is gone is one of the ends.
    let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
}

async fn read(stream: &mut TcpStream) -> Option<(String, String)> {
    let (mut bytes, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let read = stream.read(&mut chunk).await.ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&chunk[..read]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length =
            head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            return Some((head.to_owned(), body.to_owned()));
        }
    }
}
