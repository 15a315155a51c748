//! The receiver of `examples/own-sink`: a Unix socket that keeps every line, answers each as it is told, and can be gone.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::{JoinHandle, JoinSet};

/// What a row is answered; none for no answer at all.
type Answer = Box<dyn Fn(&str) -> Option<String> + Send>;

/// One message.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) key: String,
    pub(super) row: String,
}

struct Inside {
    answer: Answer,
    lines: Vec<Line>,
}

/// See the module.
pub(super) struct Socket {
    dir: tempfile::TempDir,
    inside: Arc<Mutex<Inside>>,
    task: Option<JoinHandle<()>>,
}

impl Socket {
    /// Listens, and accepts everything.
    pub(super) fn start() -> Self {
        let answer: Answer = Box::new(|_| Some("ok".to_owned()));
        let inside = Arc::new(Mutex::new(Inside { answer, lines: Vec::new() }));
        let mut socket = Self { dir: tempfile::tempdir().unwrap(), inside, task: None };
        socket.up();
        socket
    }

    /// The section of a relay that sends to it.
    pub(super) fn sink(&self) -> String {
        format!("[relay.sink.custom]\nkind = \"unix_socket\"\npath = \"{}\"\n", self.path().display())
    }

    pub(super) fn path(&self) -> std::path::PathBuf {
        self.dir.path().join("receiver.sock")
    }

    /// Answers each row so from now on.
    pub(super) fn answer(&self, answer: impl Fn(&str) -> Option<String> + Send + 'static) {
        self.inside.lock().unwrap().answer = Box::new(answer);
    }

    /// Refuses rows that hold this text, for good.
    pub(super) fn refuse(&self, text: &'static str) {
        self.answer(move |row| Some(if row.contains(text) { "no such seat" } else { "ok" }.to_owned()));
    }

    /// Every message so far, accepted or not, in order.
    pub(super) fn lines(&self) -> Vec<Line> {
        self.inside.lock().unwrap().lines.clone()
    }

    /// The ids of them, of rows whose id is a number.
    pub(super) fn ids(&self) -> Vec<i64> {
        self.lines().iter().map(|line| line.key.strip_prefix("own/").unwrap().parse().unwrap()).collect()
    }

    /// It is gone: connections are cut, new ones refused.
    pub(super) async fn down(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
            assert!(task.await.unwrap_err().is_cancelled());
            std::fs::remove_file(self.path()).unwrap();
        }
    }

    /// It is back.
    pub(super) fn up(&mut self) {
        let listener = UnixListener::bind(self.path()).unwrap();
        let inside = Arc::clone(&self.inside);
        self.task = Some(tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                connections.spawn(serve(stream, Arc::clone(&inside)));
            }
        }));
    }
}

async fn serve(stream: UnixStream, inside: Arc<Mutex<Inside>>) {
    let (reader, mut writer) = stream.into_split();
    let mut lines = BufReader::new(reader).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let (key, row) = line.split_once(' ').unwrap();
        let answer = {
            let mut inside = inside.lock().unwrap();
            inside.lines.push(Line { key: key.to_owned(), row: row.to_owned() });
            (inside.answer)(row)
        };
        let Some(answer) = answer else { continue };
        // Its sender may have been killed.
        if writer.write_all(format!("{answer}\n").as_bytes()).await.is_err() {
            return;
        }
    }
}
