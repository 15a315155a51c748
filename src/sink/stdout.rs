//! One JSON line per message on standard output, for dry runs.
//!
//! `{"relay":…,"id":…,"created_at":…,"row":{…}}`; the row is PostgreSQL's own JSON, unchanged but for line breaks
//! between its tokens.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::{Class, Failure, Flow, Mark, Mode, Published, Subject};
use crate::batch::Batch;
use crate::message::{Field, Message};

/// `[relay.sink.stdout]` of the configuration: nothing to configure.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Config {}

/// Prints the messages of one relay.
#[derive(Debug)]
pub struct StdoutSink {
    /// As a JSON string.
    relay: String,
    /// The last write failed, perhaps within a line.
    is_torn: AtomicBool,
}

/// One turn's lines.
#[derive(Debug)]
pub struct StdoutPublication<'a> {
    sink: &'a StdoutSink,
    mark: Option<Mark>,
    acknowledged: usize,
    in_flight: bool,
    stopped: Option<Failure>,
}

impl StdoutSink {
    /// A sink that prints `relay` in every line.
    #[must_use]
    pub fn new(_config: &Config, relay: &str) -> Self {
        Self { relay: json(relay), is_torn: AtomicBool::new(false) }
    }

    pub(super) fn fields(&self) -> &[Field] {
        &[Field::Row]
    }

    pub(super) fn begin(&self, mode: Mode) -> StdoutPublication<'_> {
        StdoutPublication { sink: self, mark: mode.mark, acknowledged: 0, in_flight: false, stopped: None }
    }
}

impl StdoutPublication<'_> {
    pub(super) async fn push(&mut self, batch: &Batch) -> Flow {
        self.push_to(&mut tokio::io::stdout(), batch).await
    }

    async fn push_to(&mut self, output: &mut (impl AsyncWrite + Unpin), batch: &Batch) -> Flow {
        if self.in_flight || self.stopped.is_some() {
            return Flow::Stop;
        }
        let mut lines = Vec::with_capacity(batch.bytes() + 128 * batch.len());
        if self.sink.is_torn.load(Relaxed) {
            lines.push(b'\n');
        }
        for message in batch.messages() {
            self.sink.append(&mut lines, &message, self.mark);
        }
        self.in_flight = true;
        let written = async {
            output.write_all(&lines).await?;
            output.flush().await
        };
        match written.await {
            Ok(()) => self.acknowledged += batch.len(),
            Err(error) => self.stopped = Some(closed(&error)),
        }
        self.sink.is_torn.store(self.stopped.is_some(), Relaxed);
        self.in_flight = false;
        if self.stopped.is_some() { Flow::Stop } else { Flow::Continue }
    }

    pub(super) fn finish(self) -> Published {
        let stopped = if self.in_flight { Some(Failure::deadline()) } else { self.stopped };
        Published { acknowledged: self.acknowledged, stopped, suspects: 1 }
    }
}

impl StdoutSink {
    fn append(&self, lines: &mut Vec<u8>, message: &Message<'_>, mark: Option<Mark>) {
        let (relay, id, at) = (&self.relay, json(message.id), message.created_at);
        let mark = mark.map_or_else(String::new, |mark| format!("\"{}\":true,", mark.as_str()));
        lines.extend_from_slice(format!(r#"{{"relay":{relay},"id":{id},"created_at":"{at}",{mark}"row":"#).as_bytes());
        // A line break in valid JSON stands between tokens, for example inside a `json` column that was stored so.
        let row = message.value(0).unwrap_or(b"null");
        lines.extend(row.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }));
        lines.extend_from_slice(b"}\n");
    }
}

fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn closed(error: &io::Error) -> Failure {
    let is_closed = error.kind() == io::ErrorKind::BrokenPipe;
    let (class, code, hint) = if is_closed {
        (
            Class::Fatal,
            "stdout_closed",
            "The reader of this program's output has closed it: start it again with a reader",
        )
    } else {
        (Class::Retry, "stdout_write", "Correct what the message names, a full disk perhaps")
    };
    Failure {
        class,
        // A part of the lines may have been written, and read.
        ambiguous: true,
        code: code.to_owned(),
        message: format!("Standard output cannot be written: {error}"),
        hint: hint.to_owned(),
        subject: Subject::Receiver,
        retry_after: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::Timestamp;

    fn batch() -> Batch {
        let mut batch = Batch::new(1);
        let at = Timestamp::from_pg_micros(1);
        batch.push(at, "9007199254740993", [Some(&b"{\"id\":9007199254740993,\"j\":{\n \"a\": 1}}"[..])]);
        batch.push(at, "\"\n", [None]);
        batch
    }

    #[tokio::test]
    async fn every_message_is_one_line_of_json_with_its_row_unchanged() {
        let sink = StdoutSink::new(&Config::default(), "a\"b");
        let mut publication = sink.begin(Mode::default());
        let mut output = Vec::new();
        assert_eq!(publication.push_to(&mut output, &batch()).await, Flow::Continue);
        assert_eq!(publication.finish(), Published { acknowledged: 2, stopped: None, suspects: 1 });
        let output = String::from_utf8(output).expect("UTF-8");
        let lines: Vec<_> = output.lines().collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(
            lines[0],
            r#"{"relay":"a\"b","id":"9007199254740993","created_at":"2000-01-01T00:00:00.000001Z","row":{"id":9007199254740993,"j":{  "a": 1}}}"#
        );
        for line in lines {
            serde_json::from_str::<serde_json::Value>(line).expect("is JSON");
        }
    }

    #[tokio::test]
    async fn a_closed_standard_output_is_fatal() {
        let (reader, mut writer) = tokio::io::duplex(16);
        drop(reader);
        let sink = StdoutSink::new(&Config::default(), "r");
        let mut publication = sink.begin(Mode::default());
        assert_eq!(publication.push_to(&mut writer, &batch()).await, Flow::Stop);
        let published = publication.finish();
        assert_eq!(published.acknowledged, 0);
        assert_eq!(published.stopped.map(|failure| failure.class), Some(Class::Fatal));
    }

    #[tokio::test]
    async fn full_disk_is_retried_on_a_line_of_its_own() {
        let sink = StdoutSink::new(&Config::default(), "r");
        let mut full = tokio::fs::OpenOptions::new().write(true).open("/dev/full").await.expect("opens");
        let mut publication = sink.begin(Mode::default());
        assert_eq!(publication.push_to(&mut full, &batch()).await, Flow::Stop);
        let stopped = publication.finish().stopped.expect("stopped");
        assert_eq!((stopped.class, stopped.code.as_str(), stopped.ambiguous), (Class::Retry, "stdout_write", true));
        let mut output = Vec::new();
        for begins in [b"\n{\"", b"{\"r"] {
            output.clear();
            let mut publication = sink.begin(Mode::default());
            assert_eq!(publication.push_to(&mut output, &batch()).await, Flow::Continue);
            assert_eq!(&output[..3], begins);
        }
    }

    #[tokio::test]
    async fn lines_given_up_half_way_are_not_acknowledged() {
        let (_reader, mut writer) = tokio::io::duplex(16);
        let sink = StdoutSink::new(&Config::default(), "r");
        let mut publication = sink.begin(Mode::default());
        let batch = batch();
        let pushed = publication.push_to(&mut writer, &batch);
        assert!(tokio::time::timeout(std::time::Duration::from_millis(20), pushed).await.is_err());
        assert_eq!(
            publication.finish(),
            Published { acknowledged: 0, stopped: Some(Failure::deadline()), suspects: 1 }
        );
    }
}
