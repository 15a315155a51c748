//! Open dialogues that are kept for the next mail, up to a number of them at a time.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout, timeout_at};

use super::answer::{self, Step, Trouble};
use super::mail::Mail;
use super::session::{Server, Session};
use super::wire::Reply;

/// Shorter than the minutes after which servers close an idle dialogue; one that closed earlier is found out before use.
const IDLE: Duration = Duration::from_secs(30);

/// See the module.
#[derive(Debug)]
pub(super) struct Pool {
    pub(super) server: Server,
    pub(super) connections: usize,
    /// Never closed.
    permits: Semaphore,
    idle: Mutex<Vec<Session>>,
}

impl Pool {
    pub(super) fn new(server: Server, connections: usize) -> Self {
        Self { server, connections, permits: Semaphore::new(connections), idle: Mutex::new(Vec::new()) }
    }

    /// Hands one mail over within `most`, which does not run while others have all connections; waits for one only as
    /// long as `patience` leaves that much behind it.
    pub(super) async fn send(
        &self,
        mail: &Mail,
        patience: Duration,
        most: Duration,
        step: &mut Step,
    ) -> Result<Reply, Trouble> {
        // A free one is taken without any patience to spare.
        let permit = timeout(patience.saturating_sub(most), self.permits.acquire()).await;
        let _permit = permit.map_err(|_| Trouble::Busy)?;
        let end = Instant::now() + most.min(patience);
        timeout_at(end, self.converse(mail, end, step)).await.unwrap_or(Err(Trouble::TimedOut))
    }

    /// Whether the server takes mail from here: connects and signs in; the largest mail that it takes.
    pub(super) async fn probe(&self, end: Instant, step: &mut Step) -> Result<Option<usize>, Trouble> {
        let asked = async {
            let _permit = self.permits.acquire().await;
            let session = self.session(end, step).await?;
            let limit = session.offers.limit;
            self.keep(session);
            Ok(limit)
        };
        timeout_at(end, asked).await.unwrap_or(Err(Trouble::TimedOut))
    }

    async fn converse(&self, mail: &Mail, end: Instant, step: &mut Step) -> Result<Reply, Trouble> {
        let mut session = self.session(end, step).await?;
        let mut outcome = session.send(mail, step).await;
        // These count against the row. The look is a part of the time that is left, so that a brief timeout does not hide them.
        if matches!((&outcome, *step), (Err(Trouble::Reply { code: 500.., .. }), Step::Rcpt | Step::Data))
            && let Some(trouble) = session.says_more(brief(end)).await
        {
            outcome = Err(trouble);
        }
        let is_usable = match &outcome {
            Ok(_) | Err(Trouble::TooLarge { .. }) => true,
            // The dialogue goes on behind a refusal, unless the server ends it or has lost the thread of it.
            Err(Trouble::Reply { code, .. }) => !matches!(*code, 421 | 502 | 503) && *step != Step::Content,
            Err(_) => false,
        };
        if is_usable {
            self.keep(session);
        }
        outcome
    }

    async fn session(&self, end: Instant, step: &mut Step) -> Result<Session, Trouble> {
        let patience = brief(end);
        while let Some(mut session) = self.idle() {
            if session.heard.elapsed() < IDLE && session.is_fresh(patience).await {
                return Ok(session);
            }
        }
        self.server.open(step).await
    }

    fn idle(&self) -> Option<Session> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn keep(&self, session: Session) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(session);
    }
}

/// How long an answer to a question that costs nothing may take, out of the time until `end`.
fn brief(end: Instant) -> Duration {
    answer::brief(end.saturating_duration_since(Instant::now()))
}
