//! Where the password is from that stands neither in the URL nor in the environment.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use secrecy::SecretString;
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};
use tokio::sync::Mutex;

use super::Error;
use crate::visible::{bounded, visible};

/// How long a command may take: one that asks a cloud provider takes a second or two.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a password is used for new connections before it is asked for again. Signed passwords of cloud providers are valid for
/// fifteen minutes; connections are opened by the dozen at a start.
const KEPT: Duration = Duration::from_secs(60);
/// Longer than every signed password.
const LONGEST: u64 = 64 << 10;
/// How much of what a command complains is told.
const COMPLAINT: usize = 300;

/// `password_file` or `password_command` of `[postgres]`.
#[derive(Clone, Debug, PartialEq)]
pub enum PasswordSource {
    /// Read at every connection, so that a rotated password is picked up.
    File(PathBuf),
    /// Run when a connection is opened.
    Command(PasswordCommand),
}

impl PasswordSource {
    /// The password now; none where the file is empty: whether the server asks for one it will say.
    pub(super) async fn read(&self) -> Result<Option<SecretString>, Error> {
        match self {
            Self::File(path) => {
                let text = crate::file::text(path).map_err(|source| {
                    let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                    Error::PasswordFile { path, source }
                })?;
                let password = text.trim_end_matches(['\r', '\n']);
                Ok((!password.is_empty()).then(|| password.into()))
            }
            Self::Command(command) => command.password().await.map(Some),
        }
    }

    /// The server refused it: the next connection does not use what is remembered.
    pub(super) async fn refused(&self) {
        if let Self::Command(command) = self {
            *command.kept.lock().await = None;
        }
    }

    /// As the end of a sentence about a password that was refused.
    pub(super) fn origin(&self) -> String {
        match self {
            Self::File(path) => format!(
                "; the password is from {} ([postgres] password_file), read again for every connection",
                path.display()
            ),
            Self::Command(command) => {
                format!("; the password is what {} printed ([postgres] password_command)", visible(command.program()))
            }
        }
    }
}

/// A program that prints the password, and what it printed last.
#[derive(Clone, Debug)]
pub struct PasswordCommand {
    argv: Vec<String>,
    kept: Arc<Mutex<Option<(Instant, SecretString)>>>,
}

impl PartialEq for PasswordCommand {
    fn eq(&self, other: &Self) -> bool {
        self.argv == other.argv
    }
}

impl PasswordCommand {
    /// The program and its arguments; no shell is started.
    #[must_use]
    pub fn new(argv: Vec<String>) -> Self {
        Self { argv, kept: Arc::default() }
    }

    /// The program and its arguments.
    #[must_use]
    pub fn argv(&self) -> &[String] {
        &self.argv
    }

    fn program(&self) -> &str {
        self.argv.first().map_or("", String::as_str)
    }

    /// Connections that are opened at the same time wait for one run.
    async fn password(&self) -> Result<SecretString, Error> {
        let mut kept = self.kept.lock().await;
        if let Some((at, password)) = kept.as_ref().filter(|(at, _)| at.elapsed() < KEPT) {
            tracing::trace!(age = ?at.elapsed(), "password of an earlier run is used");
            return Ok(password.clone());
        }
        let printed = run(&self.argv).await.and_then(|printed| one_line(&printed));
        let password =
            printed.map_err(|reason| Error::PasswordCommand { program: self.program().to_owned(), reason })?;
        *kept = Some((Instant::now(), password.clone()));
        Ok(password)
    }
}

/// What the command prints.
async fn run(argv: &[String]) -> Result<Vec<u8>, String> {
    let [program, args @ ..] = argv else { return Err("no program is named".to_owned()) };
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().map_err(|error| format!("cannot be started: {error}"))?;
    tokio::time::timeout(PATIENCE, finished(&mut child)).await.map_err(|_| format!("not done after {PATIENCE:?}"))?
}

async fn finished(child: &mut Child) -> Result<Vec<u8>, String> {
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err("its output cannot be read".to_owned());
    };
    let (mut printed, mut complaint) = (Vec::new(), Vec::new());
    let (mut stdout, mut stderr) = (stdout.take(LONGEST + 1), stderr.take(LONGEST));
    let read = tokio::try_join!(stdout.read_to_end(&mut printed), stderr.read_to_end(&mut complaint));
    read.map_err(|error| format!("its output cannot be read: {error}"))?;
    if printed.len() as u64 > LONGEST {
        return Err(format!("printed more than {LONGEST} bytes"));
    }
    let status = child.wait().await.map_err(|error| error.to_string())?;
    if status.success() {
        return Ok(printed);
    }
    let complaint = String::from_utf8_lossy(&complaint);
    let said = bounded(&visible(complaint.trim()), COMPLAINT);
    Err(format!("ended with {status}{}{said}", if said.is_empty() { "" } else { ": " }))
}

fn one_line(printed: &[u8]) -> Result<SecretString, String> {
    let text = std::str::from_utf8(printed).map_err(|_| "printed what is no UTF-8".to_owned())?;
    match text.trim_end_matches(['\r', '\n']) {
        "" => Err("printed nothing".to_owned()),
        line if line.contains(['\n', '\0']) => Err("printed more than a line".to_owned()),
        line => Ok(line.into()),
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    fn shell(script: String) -> PasswordCommand {
        PasswordCommand::new(vec!["/bin/sh".to_owned(), "-c".to_owned(), script])
    }

    // Guarantee: secrets.password-command
    #[tokio::test]
    async fn command_runs_once_for_many_connections_and_again_when_the_password_is_refused() {
        let dir = tempfile::tempdir().expect("made");
        let count = dir.path().join("count");
        let command = shell(format!("echo x >> {0}; wc -l < {0}", count.display()));
        let source = PasswordSource::Command(command);
        let (one, two) = tokio::join!(source.read(), source.read());
        let text = |read: Result<Option<SecretString>, Error>| {
            read.expect("printed").expect("a password").expose_secret().trim().to_owned()
        };
        assert_eq!((text(one), text(two), text(source.read().await)), ("1".into(), "1".into(), "1".into()));
        source.refused().await;
        assert_eq!(text(source.read().await), "2");
    }

    #[tokio::test]
    async fn command_without_a_password_says_why_and_is_asked_again() {
        for (script, reason) in [
            ("true", "printed nothing"),
            ("echo; echo", "printed nothing"),
            ("echo a; echo b", "printed more than a line"),
            ("printf '\\377'", "printed what is no UTF-8"),
            ("head -c 70000 /dev/zero", "printed more than 65536 bytes"),
            ("echo no token >&2; exit 3", "ended with exit status: 3: no token"),
            ("kill -9 $$", "ended with signal: 9 (SIGKILL)"),
        ] {
            let error = shell(script.to_owned()).password().await.expect_err(script).to_string();
            assert_eq!(error, format!("[postgres] password_command: /bin/sh {reason}"));
        }
        let missing = PasswordCommand::new(vec!["/no/such".to_owned()]).password().await.expect_err("missing");
        assert!(missing.to_string().contains("/no/such cannot be started: No such file"), "{missing}");
    }
}
