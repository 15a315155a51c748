//! The status page: rendered once for all who ask within half a second.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use tokio::sync::Mutex;

use super::board::{Board, Source, Standing};
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
}

#[derive(Debug)]
struct Rendered {
    at: Instant,
    of: Standing,
    html: Bytes,
}

impl StatusPage {
    /// The page of this replica, which is configured for these cursors.
    #[must_use]
    pub fn new(source: Box<dyn Source>, replica: String, configured: Vec<String>) -> Arc<Self> {
        Arc::new(Self { board: Board::new(source), replica, configured, last: Mutex::default() })
    }

    /// The page as it is now. A request that comes while it is rendered gets the same one.
    pub(super) async fn html(&self, heartbeat: &Heartbeat, readiness: &Readiness) -> Bytes {
        let standing = self.board.standing().await;
        let mut last = self.last.lock().await;
        if let Some(last) = last.as_ref().filter(|last| last.at.elapsed() < SHARED && last.of.is(&standing)) {
            return last.html.clone();
        }
        let view = View {
            standing: &standing,
            replica: &self.replica,
            configured: &self.configured,
            missing: &readiness.missing(),
            is_alive: heartbeat.is_alive(),
            now: Instant::now(),
        };
        let html = Bytes::from(page::render(&view));
        *last = Some(Rendered { at: Instant::now(), of: standing, html: html.clone() });
        html
    }
}
