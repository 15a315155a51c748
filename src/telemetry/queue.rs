//! Lines on their way to standard error.
//!
//! Promise: logging never waits for the reader of the log. A thread writes; while a pipe is full, lines wait up to
//! [`LIMIT`], further ones are dropped and counted, and the count is logged when lines get through again.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The most bytes that wait to be written.
const LIMIT: usize = 1 << 20;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    dropped: AtomicU64,
}

#[derive(Debug, Default)]
struct Waiting {
    lines: VecDeque<Vec<u8>>,
    /// Of the lines, and of the one that is being written.
    bytes: usize,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a line at the end, or counts it as dropped; never waits for the writer.
    pub(super) fn push(&self, line: Vec<u8>) {
        let mut waiting = self.lock();
        if waiting.bytes > 0 && waiting.bytes + line.len() > LIMIT {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        waiting.bytes += line.len();
        waiting.lines.push_back(line);
        self.changed.notify_all();
    }

    /// How many lines were dropped.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Waits until all lines are written, but no longer than this.
    pub(super) fn flush(&self, patience: Duration) {
        let written = self.changed.wait_timeout_while(self.lock(), patience, |waiting| waiting.bytes > 0);
        drop(written);
    }

    /// Writes lines as they come, without end; `told` is given how many were dropped since it was last called.
    pub(super) fn write(&self, mut writer: impl Write, told: impl Fn(u64)) {
        let mut known = 0;
        loop {
            let line = {
                let mut waiting = self
                    .changed
                    .wait_while(self.lock(), |waiting| waiting.lines.is_empty())
                    .unwrap_or_else(PoisonError::into_inner);
                waiting.lines.pop_front().unwrap_or_default()
            };
            let written = writer.write_all(&line).and_then(|()| writer.flush());
            let dropped = self.dropped();
            if written.is_ok() && dropped > known {
                told(dropped - known);
                known = dropped;
            }
            self.lock().bytes -= line.len();
            self.changed.notify_all();
        }
    }
}

/// Takes what is written to it as one line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line(pub(super) &'static Queue);

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.push(bytes.to_vec());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};

    use super::*;

    /// Writes nothing before it is let.
    struct Pipe {
        opened: mpsc::Receiver<()>,
        is_open: bool,
        got: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.is_open = self.is_open || self.opened.recv().is_ok();
            self.got.lock().expect("no panic").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    // Guarantee: observe.log-pipe
    #[test]
    fn full_pipe_drops_counts_and_reports_lines() {
        let queue: &'static Queue = Box::leak(Box::default());
        let (open, opened) = mpsc::channel();
        let got = Arc::new(Mutex::new(Vec::new()));
        let pipe = Pipe { opened, is_open: false, got: Arc::clone(&got) };
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || queue.write(pipe, |lines| tell.send(lines).expect("is heard")));
        let line = vec![b'x'; LIMIT / 4];
        for _ in 0..10 {
            Line(queue).write_all(&line).expect("never fails");
        }
        assert_eq!(queue.dropped(), 6);
        queue.flush(Duration::from_millis(20));
        assert!(got.lock().expect("no panic").is_empty(), "no reader yet");
        open.send(()).expect("the pipe is there");
        queue.flush(Duration::from_secs(10));
        assert_eq!(got.lock().expect("no panic").len(), LIMIT);
        assert_eq!(told.recv(), Ok(6));
        Line(queue).write_all(&vec![b'y'; 2 * LIMIT]).expect("alone it passes");
        queue.flush(Duration::from_secs(10));
        assert_eq!((got.lock().expect("no panic").len(), queue.dropped()), (3 * LIMIT, 6));
    }
}
