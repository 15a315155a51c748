//! Tells groups that rest when operators or other replicas have said something of some cursor.
//!
//! One question for all tables of the process, asked as often as [`OFTEN`] at most, instead of a look at all cursors.

use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use crate::cursor;
use crate::database::{Error, Session};

const OFTEN: Duration = Duration::from_millis(500);

/// See the module.
#[derive(Debug, Default)]
pub(in crate::relay) struct Bulletin(Mutex<Issue>);

#[derive(Debug, Default)]
struct Issue {
    number: u64,
    text: String,
    asked: Option<Instant>,
}

impl Bulletin {
    /// A number that is another one when something was said since. It is asked for before the cursors are read: what is said
    /// in between is read, and told again.
    pub(in crate::relay) async fn number(&self, session: &Session, patience: Duration) -> Result<u64, Error> {
        let mut issue = self.0.lock().await;
        if issue.asked.is_none_or(|asked| asked.elapsed() >= OFTEN) {
            // Every relay waits for it: a server that does not answer must not hold them for long.
            let asking = tokio::time::timeout(patience, cursor::news(session));
            let text = asking.await.map_err(|_| Error::Timeout(patience))??;
            issue.asked = Some(Instant::now());
            if text != issue.text {
                issue.number += 1;
                issue.text = text;
            }
        }
        Ok(issue.number)
    }
}
