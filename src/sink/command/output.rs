//! What a program writes: read to its end, kept within bounds.

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::visible;

/// Of a line, what is told.
const LINE: usize = 200;
/// A character has at most four bytes.
const LINE_BYTES: usize = 4 * LINE;
const CHUNK: usize = 8 << 10;

/// The beginning of standard output.
#[derive(Debug)]
pub(super) struct Kept {
    bytes: Vec<u8>,
    limit: usize,
}

impl Kept {
    pub(super) const fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit }
    }

    /// Reads to the end, so that the program never waits for a reader.
    pub(super) async fn read(&mut self, mut pipe: impl AsyncRead + Unpin) {
        let mut chunk = vec![0; CHUNK];
        while let Ok(count @ 1..) = pipe.read(&mut chunk).await {
            let rest = self.limit - self.bytes.len();
            self.bytes.extend_from_slice(&chunk[..count.min(rest)]);
        }
    }

    /// As text that PostgreSQL can store, within the limit, without the last line's end.
    pub(super) fn text(&self) -> String {
        let mut text = String::from_utf8_lossy(&self.bytes).replace('\0', "\u{fffd}");
        let end = (0..=self.limit.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or_default());
        text.truncate(text.trim_end_matches(['\n', '\r']).len());
        text
    }
}

/// The lines of standard error, one at a time.
#[derive(Debug, Default)]
pub(super) struct ErrorLines {
    current: Vec<u8>,
    last: String,
}

impl ErrorLines {
    /// Tells each line to `progress`, to the end.
    pub(super) async fn read(
        &mut self,
        command: &str,
        mut pipe: impl AsyncRead + Unpin,
        progress: &(dyn Fn(&str) + Sync),
    ) {
        let mut chunk = vec![0; CHUNK];
        while let Ok(count @ 1..) = pipe.read(&mut chunk).await {
            for byte in &chunk[..count] {
                match byte {
                    // A carriage return paints a bar again: each state is a line.
                    b'\n' | b'\r' => self.tell(command, progress),
                    _ if self.current.len() < LINE_BYTES => self.current.push(*byte),
                    _ => {}
                }
            }
        }
        self.tell(command, progress);
    }

    fn tell(&mut self, command: &str, progress: &(dyn Fn(&str) + Sync)) {
        let line = visible::line(String::from_utf8_lossy(&self.current).trim(), LINE);
        self.current.clear();
        if !line.is_empty() {
            tracing::debug!(command, line, "the command says");
            progress(&line);
            self.last = line;
        }
    }

    /// The newest line; empty when there was none.
    pub(super) fn last(&self) -> &str {
        &self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    async fn kept(limit: usize, bytes: &[u8]) -> String {
        let mut kept = Kept::new(limit);
        kept.read(bytes).await;
        kept.text()
    }

    #[tokio::test]
    async fn what_is_kept_of_the_output_is_within_the_limit_and_can_be_stored() {
        assert_eq!(kept(10, b"done\r\n\n").await, "done");
        assert_eq!(kept(4, b"done and more").await, "done");
        assert_eq!(kept(10, b"a\0b").await, "a\u{fffd}b");
        assert_eq!(kept(4, "aüüü".as_bytes()).await, "aü");
        assert_eq!(kept(5, &[0xff; 9]).await, "\u{fffd}");
        assert_eq!(kept(0, b"done").await, "");
    }

    #[tokio::test]
    async fn a_line_is_told_once_and_short_and_without_control_characters() {
        let told = Mutex::new(Vec::new());
        let mut text = b"10 %\r20 %\r\n\n\x1b[31mred\n".to_vec();
        text.extend(vec![b'x'; 1 << 20]);
        text.extend([&b"\n"[..], &[b'y'; LINE - 1], b"\x1bz"].concat());
        let mut lines = ErrorLines::default();
        lines.read("c", &text[..], &|line| told.lock().expect("no panic").push(line.to_owned())).await;
        let told = told.into_inner().expect("no panic");
        assert_eq!(told[..3], ["10 %", "20 %", "\\u{1b}[31mred"]);
        assert_eq!(told[3..], ["x".repeat(LINE), "y".repeat(LINE - 1)], "no escape in part");
        assert_eq!(lines.last(), told[4]);
    }
}
