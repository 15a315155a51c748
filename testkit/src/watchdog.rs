//! Ties servers and directories to the life of this process: whatever ends it, even SIGKILL, nothing stays behind.
//!
//! A watchdog is a shell that reads from a pipe whose other end only this process holds. It is told of every process
//! before that process may begin; at the end of the pipe it stops them, by process id, and removes the directory. A
//! normal [`Watchdog::stop`], or dropping it, takes the same way and waits for it, so there is only one way to clean up.
//!
//! All of them, watchdog and servers, live in process groups of their own: Ctrl-C in a terminal reaches this process
//! alone, which then decides.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::Context;
pub use rustix::process::Signal;
use rustix::process::{Pid, kill_process};

use super::startup::{POLL, no_link};

/// At the end of input: each process gets its signal, and SIGKILL after five seconds. A zombie counts as ended: who
/// should reap it may be gone. PostgreSQL's shared memory outlives a killed server, and is named in its lock file.
const SCRIPT: &str = r#"
pids=
while read -r word signal pid; do
  case $word in
    watch) pids="$pids $pid:$signal" ;;
    forget) kept=; for one in $pids; do [ "${one%:*}" = "$pid" ] || kept="$kept $one"; done; pids=$kept ;;
  esac
done
alive() { kill -0 "$1" 2>/dev/null && ! grep -q ') [ZX]' "/proc/$1/stat" 2>/dev/null; }
for one in $pids; do kill -"${one#*:}" "${one%:*}" 2>/dev/null; done
for one in $pids; do
  pid=${one%:*} left=250
  while alive "$pid" && [ $left -gt 0 ]; do left=$((left - 1)); sleep 0.02; done
  if alive "$pid"; then kill -KILL "$pid" 2>/dev/null; sleep 0.1; fi
done
lock=$1/data/postmaster.pid
[ ! -f "$lock" ] || ipcrm -m "$(sed -n '7s/.* //p' "$lock")" 2>/dev/null
left=50
while ! rm -rf "$1" 2>/dev/null && [ $left -gt 0 ]; do left=$((left - 1)); sleep 0.05; done
"#;

/// Waits for leave to go on, so that the watchdog knows the process before it does anything; without leave, it ends.
const GATE: &str = r#"read -r leave && exec "$@" </dev/null"#;

/// A directory and the processes that work in it, both gone when this process is.
#[derive(Debug)]
pub struct Watchdog {
    dir: PathBuf,
    shell: Child,
    /// `None` when it has been stopped.
    pipe: Option<ChildStdin>,
}

/// The unprivileged user that a server runs as when this process is root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
}

/// A program to start under a watchdog.
#[derive(Clone, Debug)]
pub struct Program {
    /// The executable.
    pub path: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Added to the environment.
    pub env: Vec<(String, String)>,
    /// Where standard output and standard error go, appended.
    pub log: PathBuf,
    /// Who runs it; `None` is the user of this process.
    pub user: Option<User>,
    /// What the watchdog sends to stop it.
    pub stop: Signal,
}

/// A running process under a watchdog. Dropping it does not end it; the watchdog does.
#[derive(Debug)]
pub struct Process {
    child: Child,
    reaped: bool,
}

impl Watchdog {
    /// Creates a directory that only its owner can enter, whose name begins with `outbox-relay-<name>-`, and what watches over it.
    ///
    /// # Errors
    /// When the directory cannot be made or no shell started.
    pub fn start(name: &str) -> anyhow::Result<Self> {
        let dir = tempfile::Builder::new()
            .prefix(&format!("outbox-relay-{name}-"))
            .permissions(Permissions::from_mode(0o700))
            .tempdir()
            .context("Cannot make a temporary directory")?
            .keep();
        let spawned = Command::new("sh")
            .args(["-c", SCRIPT, "outbox-relay-watchdog"])
            .arg(&dir)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        let mut shell = match spawned {
            Ok(shell) => shell,
            Err(error) => {
                std::fs::remove_dir_all(&dir)?;
                return Err(error).context("Cannot start sh as a watchdog");
            }
        };
        let pipe = shell.stdin.take();
        Ok(Self { dir, shell, pipe })
    }

    /// The directory, removed at the end.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Starts a program in the watched directory.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn spawn(&mut self, program: &Program) -> anyhow::Result<Process> {
        let log = File::options().create(true).append(true).custom_flags(no_link()).open(&program.log)?;
        let mut command = Command::new("sh");
        command
            .args(["-c", GATE, "sh"])
            .arg(&program.path)
            .args(&program.args)
            .current_dir(&self.dir)
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0);
        if let Some(user) = program.user {
            command.uid(user.uid).gid(user.gid);
        }
        // What the user's shell says about another PostgreSQL or another relay is not for the stage.
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if ["PG", "OUTBOX_RELAY", "DATABASE_URL"].iter().any(|prefix| name.starts_with(prefix)) {
                command.env_remove(&*name);
            }
        }
        command.envs(program.env.iter().map(|(key, value)| (key, value)));
        let mut child = command.spawn().with_context(|| format!("Cannot start {}", program.path.display()))?;
        self.tell("watch", program.stop.as_raw(), child.id())?;
        let mut gate = child.stdin.take().expect("standard input is piped");
        gate.write_all(b"go\n").with_context(|| format!("Cannot start {}", program.path.display()))?;
        Ok(Process { child, reaped: false })
    }

    /// Waits for the end of a process that has been told to end, and no longer watches over it.
    ///
    /// # Errors
    /// When it has not ended within `patience`: it is watched further.
    pub async fn reap(&mut self, process: &mut Process, patience: Duration) -> anyhow::Result<ExitStatus> {
        let pid = process.pid();
        let waiting = async {
            loop {
                // A zombie keeps its number: it must be forgotten before it is reaped, or a stranger could be killed.
                if process.is_zombie() {
                    self.tell("forget", 0, pid)?;
                    process.reaped = true;
                    return process.child.wait();
                }
                tokio::time::sleep(POLL).await;
            }
        };
        match tokio::time::timeout(patience, waiting).await {
            Ok(status) => Ok(status?),
            Err(_) => anyhow::bail!("Process {pid} has not ended within {patience:?}"),
        }
    }

    /// Stops every process that is still watched, removes the directory, and waits for both.
    ///
    /// # Errors
    /// When the watchdog was killed or did not succeed.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.pipe = None;
        let status = loop {
            if let Some(status) = self.shell.try_wait()? {
                break status;
            }
            tokio::time::sleep(POLL).await;
        };
        anyhow::ensure!(!self.dir.exists(), "Cannot remove {} (watchdog: {status})", self.dir.display());
        Ok(())
    }

    fn tell(&mut self, word: &str, signal: i32, pid: u32) -> io::Result<()> {
        let pipe = self.pipe.as_mut().expect("open until stopped");
        pipe.write_all(format!("{word} {signal} {pid}\n").as_bytes())
    }
}

impl Drop for Watchdog {
    /// What was not stopped, because of an error or an interruption, is stopped now; this blocks until it is.
    fn drop(&mut self) {
        if self.pipe.take().is_some() {
            // Nobody is left to hear of a failure; the watchdog has done what it could.
            let _ = self.shell.wait();
        }
    }
}

impl Process {
    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// When the process has been reaped, so that its number may be a stranger's, or when the system refuses.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        if self.reaped {
            return Err(io::Error::new(io::ErrorKind::NotFound, "The process has ended"));
        }
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a child has a process id");
        Ok(kill_process(pid, signal)?)
    }

    /// Whether it is still at work.
    #[must_use]
    pub fn is_running(&self) -> bool {
        !self.is_zombie()
    }

    fn is_zombie(&self) -> bool {
        // Not `try_wait`, which would reap it: see `Watchdog::reap`.
        self.reaped
            || std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))
                .is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with(['Z', 'X'])))
    }
}

/// How a process ended, in words.
#[must_use]
pub fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => status.to_string(),
    }
}
