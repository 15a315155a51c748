//! Logs and spans. Spans: see `traces`. Logs go to standard error, for people on a terminal and as JSON otherwise, filtered by `RUST_LOG`.
//!
//! Standard output belongs to results and never gets a log line. Logging never waits for a reader: see `queue`. An event that
//! repeats is logged so often, then withheld and counted: see `repeats`.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{IsTerminal as _, Write as _};
use std::sync::{LazyLock, OnceLock};
use std::time::Duration;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

mod queue;
mod repeats;
pub mod traces;

use queue::{Line, Queue};
use repeats::{Limit, Repeats};

/// What is on its way to standard error.
static QUEUE: LazyLock<Queue> = LazyLock::new(Queue::default);
/// What has been logged so far.
static REPEATS: LazyLock<Repeats> = LazyLock::new(Repeats::default);
/// Set once a thread writes what is in [`QUEUE`].
static WRITES: OnceLock<()> = OnceLock::new();
/// How long the end of the process, a panic or a command's word to its user waits for a log pipe that is not read.
const PATIENCE: Duration = Duration::from_millis(500);

/// In force without `RUST_LOG`.
const DEFAULT_FILTER: &str = "info";

/// librdkafka logs every reconnect of every broker connection, which the relay reports itself, once. Put before the
/// user's own words, so that `RUST_LOG=librdkafka=debug` wins.
const QUIET: &str = "librdkafka=error,rdkafka=error";

/// Why logging could not begin.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The variable cannot be read as a filter.
    #[error("RUST_LOG is not a filter: {0}; write for example RUST_LOG=info,outbox_relay=debug")]
    Filter(#[from] ParseError),
    /// The thread that writes cannot be started.
    #[error("cannot start the log's thread: {0}")]
    Thread(#[from] std::io::Error),
    /// Another subscriber is in place.
    #[error("logging has begun already: {0}")]
    Twice(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Begins logging for this process; `filter` is the value of `RUST_LOG`.
///
/// # Errors
/// When the filter cannot be read, its thread cannot be started, or logging has begun already.
pub fn init(filter: Option<&str>) -> Result<(), Error> {
    let filter = parse(filter)?;
    let told = |lines| tracing::warn!(lines, "log lines dropped: standard error was not read");
    std::thread::Builder::new().name("log".to_owned()).spawn(move || QUEUE.write(std::io::stderr(), told))?;
    std::thread::Builder::new().name("log-repeats".to_owned()).spawn(|| {
        loop {
            std::thread::sleep(repeats::REPORT);
            REPEATS.report();
        }
    })?;
    let _ = WRITES.set(());
    std::panic::set_hook(Box::new(panicked));
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| Line(&QUEUE));
    // A log that nobody reads any more must not end what it is about: told of it, the library would panic.
    let subscriber = subscriber.log_internal_errors(false);
    let begun = if std::io::stderr().is_terminal() {
        subscriber.with_target(false).finish().with(Limit(&REPEATS)).try_init()
    } else {
        let json = subscriber.json().flatten_event(true).with_current_span(true).with_span_list(false);
        json.finish().with(Limit(&REPEATS)).try_init()
    };
    begun.map_err(|error| Error::Twice(error.into()))
}

/// Writes a line that is no log line to standard error, behind the log lines before it.
pub fn say(line: &str) {
    if WRITES.get().is_some() {
        QUEUE.push(format!("{line}\n").into_bytes());
        QUEUE.flush(PATIENCE);
    } else {
        let _ = writeln!(std::io::stderr().lock(), "{line}");
    }
}

/// Waits until what was logged is written, half a second at most. To be called before the process exits.
pub fn flush() {
    if WRITES.get().is_some() {
        REPEATS.report();
    }
    QUEUE.flush(PATIENCE);
}

/// How many log lines were dropped because standard error was not read.
#[must_use]
pub fn dropped() -> u64 {
    QUEUE.dropped()
}

/// What the standard library's own hook prints, which would wait for the reader.
fn panicked(panic: &std::panic::PanicHookInfo<'_>) {
    let thread = std::thread::current();
    let mut text = format!("\nthread '{}' {panic}", thread.name().unwrap_or("<unnamed>"));
    let backtrace = Backtrace::capture();
    if backtrace.status() == BacktraceStatus::Captured {
        text.push_str(&format!("\nstack backtrace:\n{backtrace}"));
    }
    say(&text);
}

fn parse(filter: Option<&str>) -> Result<EnvFilter, ParseError> {
    let filter = filter.map(str::trim).filter(|filter| !filter.is_empty()).unwrap_or(DEFAULT_FILTER);
    EnvFilter::builder().parse(format!("{QUIET},{filter}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn librdkafka_is_quiet_unless_asked_for() {
        let quiet = parse(None).expect("valid").to_string();
        assert!(quiet.contains("librdkafka=error") && quiet.contains("info"), "{quiet}");
        let loud = parse(Some("librdkafka=debug")).expect("valid").to_string();
        assert!(loud.contains("librdkafka=debug") && !loud.contains("librdkafka=error"), "{loud}");
    }

    #[test]
    fn an_unreadable_filter_is_an_error() {
        let error = Error::from(parse(Some("info,outbox_relay=loud")).expect_err("no level"));
        assert!(error.to_string().starts_with("RUST_LOG is not a filter"), "{error}");
    }
}
