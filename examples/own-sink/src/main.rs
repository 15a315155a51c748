//! outbox-relay with a sink of its own: each message is a line on a Unix socket, which the receiver answers by a line, `ok` or
//! why it does not want it.
//!
//! ```toml
//! [relay.sink.custom]
//! kind = "unix_socket"
//! path = "/run/receiver.sock"
//! ```

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use outbox_relay::{Class, CustomSink, Delivery, Description, Failure, Program, Stopped, async_trait};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::time::timeout_at;

fn main() -> ExitCode {
    Program::new().sink("unix_socket", |table| table.parse::<UnixSocket>()).run()
}

/// The keys of `[relay.sink.custom]`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct UnixSocket {
    path: PathBuf,
}

#[async_trait]
impl CustomSink for UnixSocket {
    fn description(&self) -> Description {
        Description::in_batches(format!("unix:{}", self.path.display()))
    }

    async fn check(&self) -> Result<(), Failure> {
        self.connect().await.map(drop)
    }

    async fn publish(&self, messages: &[Delivery<'_>], deadline: Instant) -> Result<(), Stopped> {
        // Until the first line is written, the receiver has nothing for certain.
        let mut stream = BufReader::new(self.connect().await?);
        for (accepted, message) in messages.iter().enumerate() {
            let row = String::from_utf8_lossy(message.value(0).unwrap_or_default()).replace(['\r', '\n'], " ");
            let line = format!("{} {row}\n", message.idempotency_key());
            // From here on it may have the message, unless it says that it does not.
            let answer =
                timeout_at(deadline.into(), ask(&mut stream, &line)).await.unwrap_or_else(|late| Err(late.into()));
            let failure = match answer.as_deref() {
                Ok("ok") => continue,
                Ok(why) => Failure::of(Class::Poison, "refused", why, "Correct the row, and send it again."),
                Err(error) => retry(error).in_doubt(),
            };
            return Err(Stopped::after(accepted, failure));
        }
        Ok(())
    }
}

impl UnixSocket {
    async fn connect(&self) -> Result<UnixStream, Failure> {
        UnixStream::connect(&self.path).await.map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => Failure { class: Class::Fatal, ..retry(&error) },
            _ => retry(&error),
        })
    }
}

async fn ask(stream: &mut BufReader<UnixStream>, line: &str) -> io::Result<String> {
    stream.get_mut().write_all(line.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_line(&mut answer).await?;
    answer.strip_suffix('\n').map(str::to_owned).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

fn retry(error: &io::Error) -> Failure {
    Failure::of(Class::Retry, "away", error.to_string(), "Start the receiver, or correct `path` and its permissions.")
}
