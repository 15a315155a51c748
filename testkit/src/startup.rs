//! What starting a server takes: a free port, patience, and the end of its log when it does not start.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How often a state that cannot be awaited is looked at.
pub(super) const POLL: Duration = Duration::from_millis(5);

/// A port of the loopback interface that is free now and that the system does not hand out by itself, so that a server
/// can be started on it again after it was killed.
///
/// # Errors
/// When none is found.
pub fn free_port() -> anyhow::Result<u16> {
    /// What this process has given out: it is free until its server listens.
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    for _ in 0..100 {
        let port = fastrand::u16(15_000..32_000);
        if !given.contains(&port) && std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            given.insert(port);
            return Ok(port);
        }
    }
    anyhow::bail!("Found no free port on 127.0.0.1 between 15000 and 32000")
}

/// Writes a file that only its owner can read.
///
/// # Errors
/// The system's.
pub fn private(file: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600).custom_flags(no_link());
    options.open(file)?.write_all(text.as_bytes())
}

/// Opens no file that a link leads to: another user may have put it there.
pub(crate) fn no_link() -> i32 {
    i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or_default()
}

/// The end of a log file, for an error message.
#[must_use]
pub fn tail(log: &Path) -> String {
    let text = std::fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(15)..].join("\n")
}

/// Retries what fails until it succeeds or `deadline` has passed; then the last error is the answer. `alive` ends it
/// early, for example because the server it waits for has ended.
pub(super) async fn until<T, F>(
    deadline: Duration,
    mut alive: impl FnMut() -> bool,
    mut attempt: impl FnMut() -> F,
) -> anyhow::Result<T>
where
    F: Future<Output = anyhow::Result<T>>,
{
    let end = tokio::time::Instant::now() + deadline;
    loop {
        let error = match attempt().await {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        if !alive() || tokio::time::Instant::now() >= end {
            return Err(error);
        }
        tokio::time::sleep(POLL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A broker whose two listeners were given one port did not start.
    #[test]
    fn no_port_is_given_twice() {
        let ports: BTreeSet<u16> = (0..1_000).map(|_| free_port().expect("a port")).collect();
        assert_eq!(ports.len(), 1_000);
    }
}
