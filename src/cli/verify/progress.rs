//! How far a long comparison is, on a terminal.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::cli::table::visible;
use crate::verify::topic::Watch;

const EVERY: Duration = Duration::from_millis(500);

/// Shown until it is dropped.
pub(super) struct Progress(Option<JoinHandle<()>>);

impl Progress {
    pub(super) fn show(name: &str, watch: &Arc<Watch>) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self(None);
        }
        let (name, watch) = (visible(name), Arc::clone(watch));
        Self(Some(tokio::spawn(async move {
            loop {
                tokio::time::sleep(EVERY).await;
                let (seen, total) = (watch.seen.load(Ordering::Relaxed), watch.total.load(Ordering::Relaxed));
                let of = if total == 0 { " rows".to_owned() } else { format!(" of {total} records") };
                // There is no other place to report a failure of that.
                let _ = write!(std::io::stderr(), "\r\x1b[K{name}: {seen}{of}");
            }
        })))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(task) = self.0.take() {
            task.abort();
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
