//! How long a command waits for its servers.
//!
//! Promise: a command ends, also when a server accepts the connection and then says nothing, at any time. `run` without
//! `--once` has no such end; `status --watch` has it for each poll.

use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::{Verb, confirm, health};
use crate::config::{Config, parse_duration};

/// For opening a connection, when neither the flag nor the URL has a limit.
const CONNECT: Duration = Duration::from_secs(10);
/// For commands that ask and end.
const USUAL: Duration = Duration::from_secs(15);
/// For commands whose work grows with the database.
const LONG: Duration = Duration::from_secs(3600);
/// The most for a statement that is under way at the limit.
const LAST: Duration = Duration::from_secs(30);
/// The least.
const LEAST: Duration = Duration::from_secs(1);
/// The shortest limit that may be given: of a shorter one, servers that are well miss the end.
const SHORTEST: Duration = Duration::from_millis(100);
/// For what PostgreSQL is asked before and after work whose length is an argument.
pub(super) const ASKING: Duration = Duration::from_secs(5);

/// Limits of every command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct Limits {
    /// How long opening a connection to PostgreSQL may take; `connect_timeout` of postgres.url by default, or 10s
    #[arg(long, global = true, value_name = "DURATION", value_parser = limit)]
    pub connect_timeout: Option<Duration>,
    /// How long the command may take; 15s by default, 1h for migrate and prune, 3s for health. The time of --observe is added, and that of
    /// your answer to a question. status --watch: each poll. No limit for run without --once, and none by default for verify
    #[arg(long, global = true, value_name = "DURATION", value_parser = limit)]
    pub timeout: Option<Duration>,
}

fn limit(text: &str) -> Result<Duration, String> {
    let limit = parse_duration(text)?;
    if limit < SHORTEST {
        return Err(format!("a server needs longer to answer; write at least {SHORTEST:?}"));
    }
    Ok(limit)
}

/// The command has taken too long.
#[derive(Debug, thiserror::Error)]
#[error(
    "no result within {0:?} (--timeout): a server does not answer, or the command needs longer; a change that it makes may be \
     done or not"
)]
pub struct Late(Duration);

impl Limits {
    /// The configuration with the limit of the flag.
    #[must_use]
    pub fn applied(self, mut config: Config) -> Config {
        if let Some(limit) = self.connect_timeout {
            config.postgres.connection.connect_timeout(limit);
        }
        config
    }

    /// How long this command may take; none: as long as it likes.
    #[must_use]
    pub fn of(self, verb: &Verb) -> Option<Duration> {
        let usual = self.timeout.unwrap_or(USUAL);
        match verb {
            Verb::Run(_) => None,
            Verb::Verify(_) => self.timeout,
            Verb::Migrate(_) | Verb::Prune(_) => Some(self.timeout.unwrap_or(LONG)),
            Verb::Check(args) => Some(usual.saturating_add(args.observe.unwrap_or_default())),
            Verb::Health(_) => Some(self.timeout.unwrap_or(health::LIMIT)),
            Verb::Cursor(args) => Some(args.verb.waits().map_or(usual, |wait| wait.saturating_add(ASKING))),
            Verb::Status(_)
            | Verb::Replica(_)
            | Verb::DeadLetter(_)
            | Verb::Request(_)
            | Verb::Schedule(_)
            | Verb::Action(_)
            | Verb::Config(_)
            | Verb::Convert(_)
            | Verb::Completions(_)
            | Verb::Man(_) => Some(usual),
        }
    }
}

/// How long opening one of its connections may take.
pub(super) fn opening(config: &Config) -> Duration {
    let connection = &config.postgres.connection;
    let hosts = u32::try_from(connection.get_hosts().len()).unwrap_or(u32::MAX).max(1);
    connection.get_connect_timeout().map_or(CONNECT, |limit| limit.saturating_mul(hosts))
}

/// Does it within the limit. What a person takes to answer a question does not count.
///
/// # Errors
/// [`Late`], or the work's own.
pub async fn within<T>(limit: Option<Duration>, work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let mut work = Box::pin(work);
    let (begun, before) = (Instant::now(), confirm::thought());
    let end = || begun.checked_add(limit?.saturating_add(confirm::thought() - before));
    loop {
        let Some(now) = end() else { return work.await };
        match timeout_at(now, &mut work).await {
            Ok(done) => return done,
            Err(_) if end() == Some(now) => return Err(Late(limit.unwrap_or_default()).into()),
            Err(_) => {}
        }
    }
}

/// How long a statement that is under way at the limit may still take: as long again as the command.
pub(super) fn last(limit: Duration) -> Duration {
    limit.clamp(LEAST, LAST)
}

/// Does it, and cancels `stop` at the limit; then the work ends by itself after the statement that is under way.
///
/// # Errors
/// [`Late`] when it does not, or the work's own.
pub async fn ending<T>(
    limit: Option<Duration>,
    stop: &CancellationToken,
    work: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    let Some(limit) = limit else { return work.await };
    let mut work = pin!(work);
    match timeout(limit, &mut work).await {
        Ok(done) => done,
        Err(_) => {
            stop.cancel();
            timeout(last(limit) + ASKING, work).await.map_err(|_| Late(limit))?
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_ends_after_its_batch_at_the_limit() {
        let (limit, stop) = (Some(Duration::from_millis(50)), CancellationToken::new());
        let in_time = ending(limit, &stop, async { Ok(1) }).await.expect("in time");
        assert_eq!((in_time, stop.is_cancelled()), (1, false));
        let batch = async {
            stop.cancelled().await;
            Ok(2)
        };
        assert_eq!(ending(limit, &stop, batch).await.expect("after its batch"), 2);
        assert!(stop.is_cancelled());
    }

    // One test: the time of questions is the process's.
    #[tokio::test]
    async fn late_work_names_limit_and_flag_questions_do_not_count() {
        let limit = Duration::from_millis(50);
        let error = within(Some(limit), std::future::pending::<anyhow::Result<()>>()).await.expect_err("no end");
        assert!(error.to_string().starts_with("no result within 50ms (--timeout): "), "{error}");
        let asking = async {
            confirm::answered(Duration::from_secs(60));
            tokio::time::sleep(limit * 2).await;
            Ok(())
        };
        within(Some(limit), asking).await.expect("a minute of thought");
        within(None, async { Ok(limit) }).await.expect("no limit");
        within(Some(Duration::MAX), async { Ok(limit) }).await.expect("no limit either");
    }
}
