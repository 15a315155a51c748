//! Where the password is from that stands neither in the URL nor in the environment.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use secrecy::SecretString;
use tokio::sync::Mutex;

use super::Error;
use crate::visible::visible;
use run::{TIMEOUT, run};

mod run;

/// How long a password is used for new connections before the command is run again. Signed passwords of cloud providers are valid for
/// fifteen minutes; connections are opened by the dozen at a start.
const KEPT: Duration = Duration::from_secs(60);
/// The shortest time between two runs, whatever the server says of the password.
const GAP: Duration = Duration::from_secs(5);
/// How long a failure is the answer to everyone who waited for that run.
const FAILED: Duration = Duration::from_secs(1);

/// `password_file` or `password_command` of `[postgres]`.
#[derive(Clone, Debug, PartialEq)]
pub enum PasswordSource {
    /// Read at every connection, so that a rotated password is picked up.
    File(PathBuf),
    /// Run when a connection is opened.
    Command(PasswordCommand),
}

/// A password, and since when it is known.
#[derive(Clone, Debug)]
pub(super) struct Password {
    pub(super) text: SecretString,
    at: Instant,
}

impl PasswordSource {
    /// The password now; none where the file is empty: whether the server asks for one it will say.
    pub(super) async fn read(&self) -> Result<Option<Password>, Error> {
        match self {
            Self::File(path) => {
                let text = crate::file::text(path).map_err(|source| {
                    let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                    Error::PasswordFile { path, source }
                })?;
                let password = text.trim_end_matches(['\r', '\n']);
                Ok((!password.is_empty()).then(|| Password { text: password.into(), at: Instant::now() }))
            }
            Self::Command(command) => command.password().await.map(Some),
        }
    }

    /// The server refused it. Whether another one may be had at once: of a command that has not just been run.
    pub(super) async fn refused(&self, password: &Password) -> bool {
        let Self::Command(command) = self else { return false };
        if password.at.elapsed() < GAP {
            return false;
        }
        let mut last = command.last.lock().await;
        // Another connection may have had it refused before, and the command has been run since.
        last.take_if(|last| {
            last.at == password.at || last.before.as_ref().is_some_and(|before| before.at == password.at)
        });
        true
    }

    /// Whether it is being waited for.
    pub(super) fn is_awaited(&self) -> bool {
        matches!(self, Self::Command(command) if command.last.try_lock().is_err())
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

    /// It was not there in time.
    pub(super) fn late(&self, limit: Duration) -> Error {
        let program = if let Self::Command(command) = self { command.program() } else { "" };
        Error::PasswordCommand { program: program.to_owned(), reason: format!("not done after {limit:?}") }
    }
}

/// How a run ended.
#[derive(Debug)]
struct Last {
    at: Instant,
    result: Result<SecretString, String>,
    /// What was printed before this run failed, which the server has not refused.
    before: Option<Password>,
}

impl Last {
    /// A service that prints no password is no reason to do without one that still counts.
    fn password(&self) -> Result<Password, String> {
        match (&self.result, &self.before) {
            (Ok(text), _) => Ok(Password { text: text.clone(), at: self.at }),
            (Err(_), Some(before)) => Ok(before.clone()),
            (Err(reason), None) => Err(reason.clone()),
        }
    }
}

/// A program that prints the password, and what it printed last.
#[derive(Clone, Debug)]
pub struct PasswordCommand {
    argv: Vec<String>,
    last: Arc<Mutex<Option<Last>>>,
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
        Self { argv, last: Arc::default() }
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
    async fn password(&self) -> Result<Password, Error> {
        let this = self.clone();
        // In a task of its own: a caller that gives up must not end what others wait for.
        let result = tokio::spawn(async move { this.kept_or_printed().await }).await;
        let result = result.unwrap_or_else(|error| Err(error.to_string()));
        result.map_err(|reason| Error::PasswordCommand { program: self.program().to_owned(), reason })
    }

    async fn kept_or_printed(&self) -> Result<Password, String> {
        let mut last = self.last.lock().await;
        let limit = |last: &Last| match (&last.result, &last.before) {
            (Ok(_), _) => KEPT,
            // Not each connection waits for a service that hangs.
            (Err(_), Some(_)) => TIMEOUT * 2,
            (Err(_), None) => FAILED,
        };
        if let Some(last) = last.as_ref().filter(|last| last.at.elapsed() < limit(last)) {
            return last.password();
        }
        let result = run(&self.argv).await.and_then(|printed| one_line(&printed));
        let before = last.take().and_then(|last| last.password().ok()).filter(|_| result.is_err());
        if let (Err(reason), Some(_)) = (&result, &before) {
            tracing::warn!(program = self.program(), %reason, "password_command has failed; the password of before is used");
        }
        last.insert(Last { at: Instant::now(), result, before }).password()
    }
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
    async fn command_runs_once_for_many_connections_and_again_when_an_older_password_is_refused() {
        let dir = tempfile::tempdir().expect("made");
        let command = shell(format!("echo x >> {0}; wc -l < {0}", dir.path().join("count").display()));
        let source = PasswordSource::Command(command.clone());
        let read = async || source.read().await.expect("printed").expect("a password");
        let text = |password: &Password| password.text.expose_secret().trim().to_owned();
        let (one, two) = tokio::join!(read(), read());
        assert_eq!((text(&one), text(&two), text(&read().await)), ("1".into(), "1".into(), "1".into()));
        assert!(!source.refused(&one).await, "it has just been printed: another run would print the same");
        assert_eq!(text(&read().await), "1");
        let earlier = Instant::now().checked_sub(GAP).expect("the machine runs for longer");
        command.last.lock().await.as_mut().expect("a run").at = earlier;
        let old = read().await;
        assert!(source.refused(&old).await);
        assert_eq!(text(&read().await), "2");
        assert!(source.refused(&old).await, "of another connection, later");
        assert_eq!(text(&read().await), "2", "the new one is kept");
    }

    // Guarantee: secrets.password-command
    #[tokio::test]
    async fn run_goes_on_when_the_first_who_waited_for_it_gives_up() {
        let dir = tempfile::tempdir().expect("made");
        let command = shell(format!("echo x >> {0}; sleep 1; wc -l < {0}", dir.path().join("count").display()));
        let source = PasswordSource::Command(command);
        tokio::time::timeout(Duration::from_millis(200), source.read()).await.expect_err("too early");
        assert!(source.is_awaited());
        let password = source.read().await.expect("printed").expect("a password");
        assert_eq!(password.text.expose_secret().trim(), "1");
    }

    // Guarantee: secrets.password-command
    #[tokio::test]
    async fn password_of_before_is_used_while_the_command_fails_until_it_is_refused() {
        let dir = tempfile::tempdir().expect("made");
        let file = dir.path().join("token");
        std::fs::write(&file, "one").expect("written");
        let command = shell(format!("cat {}", file.display()));
        let source = PasswordSource::Command(command.clone());
        let one = source.read().await.expect("printed").expect("a password");
        std::fs::remove_file(&file).expect("removed");
        let age = async |by: Duration| {
            let mut last = command.last.lock().await;
            let last = last.as_mut().expect("a run");
            last.at = last.at.checked_sub(by).expect("the machine runs for longer");
            if let Some(before) = &mut last.before {
                before.at = before.at.checked_sub(by).expect("the machine runs for longer");
            }
        };
        age(KEPT).await;
        let still = source.read().await.expect("kept").expect("a password");
        assert_eq!(still.text.expose_secret(), one.text.expose_secret());
        assert!(source.refused(&still).await);
        assert!(source.read().await.expect_err("refused").to_string().contains("No such file"));
    }

    #[tokio::test]
    async fn command_without_a_password_says_why() {
        for (script, reason) in [
            ("true", "printed nothing"),
            ("echo; echo", "printed nothing"),
            ("echo a; echo b", "printed more than a line"),
            ("printf '\\377'", "printed what is no UTF-8"),
            ("head -c 1000000 /dev/zero", "printed more than 65536 bytes"),
            ("head -c 1000000 /dev/zero >&2; echo no token >&2; exit 3", "ended with exit status: 3: "),
            ("echo no token >&2; exit 3", "ended with exit status: 3: no token"),
            ("kill -9 $$", "ended with signal: 9 (SIGKILL)"),
        ] {
            let error = shell(script.to_owned()).password().await.expect_err(script).to_string();
            let expected = format!("[postgres] password_command: /bin/sh {reason}");
            assert!(error.starts_with(&expected), "{error}");
        }
        let missing = PasswordCommand::new(vec!["/no/such".to_owned()]).password().await.expect_err("missing");
        assert!(missing.to_string().contains("/no/such cannot be started: No such file"), "{missing}");
    }

    #[tokio::test]
    async fn process_that_outlives_its_command_delays_no_password() {
        let command = shell("sleep 5 & echo secret".to_owned());
        let begun = Instant::now();
        assert_eq!(command.password().await.expect("printed").text.expose_secret(), "secret");
        assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    }
}
