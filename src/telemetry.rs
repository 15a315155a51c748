//! Logs: to standard error, for people on a terminal and as JSON otherwise, filtered by `RUST_LOG`.
//!
//! Standard output belongs to results and never gets a log line.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

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
    /// Another subscriber is in place.
    #[error("logging has begun already: {0}")]
    Twice(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Begins logging for this process; `filter` is the value of `RUST_LOG`.
///
/// # Errors
/// When the filter cannot be read, or logging has begun already.
pub fn init(filter: Option<&str>) -> Result<(), Error> {
    let filter = parse(filter)?;
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A log that nobody reads any more must not end what it is about: told of it, the library would panic.
    let subscriber = subscriber.log_internal_errors(false);
    let begun = if std::io::stderr().is_terminal() {
        subscriber.with_target(false).try_init()
    } else {
        subscriber.json().flatten_event(true).with_current_span(true).with_span_list(false).try_init()
    };
    begun.map_err(Error::Twice)
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
