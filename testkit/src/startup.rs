//! What starting a server takes: a free port, patience, and the end of its log when it does not start.

use std::collections::BTreeSet;
use std::fs::{OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
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
/// The system's, and when the file is another user's.
pub fn private(file: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut opened = options.write(true).create(true).truncate(false).mode(0o600).custom_flags(no_link()).open(file)?;
    // Made beforehand by another user, it stays readable to that user.
    if opened.metadata()?.uid() != rustix::process::geteuid().as_raw() {
        let what = format!("{} belongs to another user", file.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
    }
    opened.set_permissions(Permissions::from_mode(0o600))?;
    opened.set_len(0)?;
    opened.write_all(text.as_bytes())
}

/// Whether what is in a directory was put there by this user or by root.
pub(crate) fn is_trusted(dir: &Path) -> bool {
    let ours = [0, rustix::process::geteuid().as_raw()];
    dir.metadata().is_ok_and(|dir| ours.contains(&dir.uid()) && dir.mode() & 0o002 == 0)
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

    /// What another user made, or may change, is neither written to nor run.
    #[test]
    fn what_others_may_change_is_not_trusted() {
        let dir = tempfile::tempdir().expect("a directory");
        assert!(is_trusted(dir.path()));
        let open = dir.path().join("open");
        std::fs::create_dir(&open).expect("a directory");
        std::fs::set_permissions(&open, Permissions::from_mode(0o777)).expect("it is ours");
        assert!(!is_trusted(&open) && !is_trusted(&dir.path().join("missing")));
        let file = dir.path().join("file");
        std::fs::write(&file, "old and longer").expect("written");
        std::fs::set_permissions(&file, Permissions::from_mode(0o644)).expect("it is ours");
        private(&file, "new").expect("it is ours");
        assert_eq!(std::fs::read_to_string(&file).expect("read"), "new");
        assert_eq!(file.metadata().expect("it is there").mode() & 0o777, 0o600);
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&file, Some(1), None).expect("root may");
            std::os::unix::fs::chown(dir.path(), Some(1), None).expect("root may");
            let refused = private(&file, "secret").expect_err("another user's");
            assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
            assert!(!is_trusted(dir.path()));
        }
    }

    /// A broker whose two listeners were given one port did not start.
    #[test]
    fn no_port_is_given_twice() {
        let ports: BTreeSet<u16> = (0..1_000).map(|_| free_port().expect("a port")).collect();
        assert_eq!(ports.len(), 1_000);
    }
}
