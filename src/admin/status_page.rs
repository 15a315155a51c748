//! The status page: rendered once for all that ask within half a second.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use tokio::sync::Mutex;

use super::board::{Board, Source, Standing};
use super::live::{self, Live, Pace};
use super::page::{self, View};
use crate::health::{Heartbeat, Readiness};

const SHARED: Duration = Duration::from_millis(500);

/// See the module.
#[derive(Debug)]
pub struct StatusPage {
    board: Arc<Board>,
    replica: String,
    configured: Vec<String>,
    last: Mutex<Option<Rendered>>,
    live: Live,
}

#[derive(Debug)]
struct Rendered {
    at: Instant,
    of: Standing,
    shown: Shown,
}

/// The page at some instant.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    pub(super) html: Bytes,
    /// Another number when it shows something else; ages do not count.
    pub(super) version: u64,
}

impl StatusPage {
    /// The page of this replica, which is configured for these cursors.
    #[must_use]
    pub fn new(source: Box<dyn Source>, replica: String, configured: Vec<String>) -> Arc<Self> {
        Self::at_pace(live::USUAL, source, replica, configured)
    }

    pub(super) fn at_pace(pace: Pace, source: Box<dyn Source>, replica: String, configured: Vec<String>) -> Arc<Self> {
        let (board, last, live) = (Board::new(source), Mutex::default(), Live::new(pace));
        Arc::new(Self { board, replica, configured, last, live })
    }

    /// The streams that say when it shows something else.
    pub(super) const fn live(&self) -> &Live {
        &self.live
    }

    /// The page as it is now. A request that comes while it is rendered gets the same one.
    pub(super) async fn shown(&self, heartbeat: &Heartbeat, readiness: &Readiness) -> Shown {
        let standing = self.board.standing().await;
        let mut last = self.last.lock().await;
        if let Some(last) = last.as_ref().filter(|last| last.at.elapsed() < SHARED && last.of.is(&standing)) {
            return last.shown.clone();
        }
        let view = View {
            standing: &standing,
            replica: &self.replica,
            configured: &self.configured,
            missing: &readiness.missing(),
            is_alive: heartbeat.is_alive(),
            now: Instant::now(),
        };
        let page = page::render(&view);
        let shown = Shown { html: Bytes::from(page.html), version: page.version };
        *last = Some(Rendered { at: Instant::now(), of: standing, shown: shown.clone() });
        shown
    }
}
