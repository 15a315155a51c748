//! The PostgreSQL that is installed, and whom it runs as.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};

use super::super::startup::private;
use super::super::watchdog::User;
use super::password;

/// Names the directory with `initdb` and `postgres`, instead of what is found.
pub const BINARIES: &str = "OUTBOX_RELAY_PG_BIN";

/// What `initdb` reads the superuser's password from, in the server's directory; deleted after it.
pub(super) const PASSWORD_FILE: &str = "password";

pub(super) fn initdb_command(binaries: &Path, dir: &Path, user: Option<User>) -> anyhow::Result<Command> {
    let mut command = Command::new(binaries.join("initdb"));
    command.args(["-U", "postgres", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions", "-D"]);
    command.arg(dir.join("data")).current_dir(dir).process_group(0);
    let file = dir.join(PASSWORD_FILE);
    private(&file, &password::verifier("postgres"))?;
    command.args(["-A", "scram-sha-256"]).arg(format!("--pwfile={}", file.display()));
    if let Some(user) = user {
        std::os::unix::fs::lchown(&file, Some(user.uid), Some(user.gid))?;
        command.uid(user.uid).gid(user.gid);
    }
    Ok(command)
}

pub(super) fn run_initdb(mut command: Command) -> anyhow::Result<()> {
    let output = command.output().context("Cannot start initdb")?;
    ensure!(output.status.success(), "initdb failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(())
}

/// The directory with `initdb` and `postgres`: as told, on PATH, or the newest of the distribution's.
///
/// # Errors
/// When there is none.
pub fn binaries() -> anyhow::Result<PathBuf> {
    let complete = |dir: &PathBuf| dir.join("initdb").is_file() && dir.join("postgres").is_file();
    if let Some(dir) = std::env::var_os(BINARIES).map(PathBuf::from) {
        ensure!(complete(&dir), "{BINARIES}={} has no initdb and postgres", dir.display());
        return Ok(dir);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    if let Some(dir) = std::env::split_paths(&path).find(complete) {
        return Ok(dir);
    }
    let version = |dir: &PathBuf| -> u32 {
        dir.parent().and_then(|dir| dir.file_name()?.to_str()?.parse().ok()).unwrap_or_default()
    };
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions.map(|entry| entry.path().join("bin")).filter(complete).max_by_key(version);
    newest.with_context(|| {
        format!(
            "PostgreSQL is not installed: found no initdb and postgres on PATH or in /usr/lib/postgresql/*/bin. Install it \
             (Debian: `apt-get install postgresql`; `make demo` and `make test` do so), put its bin directory on PATH, or \
             name that directory in {BINARIES}"
        )
    })
}

/// Whom to run as: as this process is, unless that is root.
pub(super) fn unprivileged() -> anyhow::Result<Option<User>> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let users = std::fs::read_to_string("/etc/passwd").context("Cannot look for an unprivileged user")?;
    for name in ["postgres", "nobody"] {
        if let Some(user) = users.lines().find_map(|line| user_of(line, name)) {
            return Ok(Some(user));
        }
    }
    bail!("PostgreSQL does not run as root, and there is no user `postgres` or `nobody` to run it as")
}

fn user_of(line: &str, name: &str) -> Option<User> {
    let mut fields = line.split(':');
    if fields.next() != Some(name) {
        return None;
    }
    let (uid, gid) = (fields.nth(1)?, fields.next()?);
    Some(User { uid: uid.parse().ok()?, gid: gid.parse().ok()? })
}
