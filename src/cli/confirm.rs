//! Asking before something is done that cannot be taken back: on a terminal a question, elsewhere `--yes`.

use std::io::{self, BufRead, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::output::complain;

/// Milliseconds that a person has taken to answer: no limit of a command counts them.
static THOUGHT: AtomicU64 = AtomicU64::new(0);

/// How long a person has taken to answer, all questions of this process together.
pub(super) fn thought() -> Duration {
    Duration::from_millis(THOUGHT.load(Ordering::Relaxed))
}

/// A question took so long.
pub(super) fn answered(took: Duration) {
    THOUGHT.fetch_add(u64::try_from(took.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
}

/// How an operator agrees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct Consent {
    /// Do it without asking; needed where standard input is no terminal
    #[arg(long, conflicts_with = "dry_run")]
    pub yes: bool,
    /// Show what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// What an operator said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Do it.
    Yes,
    /// Leave it.
    No,
    /// Only show what it would be.
    DryRun,
}

/// Nobody could be asked, and `--yes` was not given. A usage error: the verb ends with 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "standard input is no terminal: add --yes to do it without confirmation, or --dry-run to print only what it would do"
)]
pub struct Unconfirmed;

impl Consent {
    /// Asks, unless the arguments answer already. The question goes to standard error, like all talk.
    ///
    /// # Errors
    /// [`Unconfirmed`], or when the terminal cannot be read.
    pub fn ask(self, question: &str) -> anyhow::Result<Answer> {
        if self.dry_run {
            return Ok(Answer::DryRun);
        }
        confirm(question, self.yes)
    }
}

/// Asks whether to go on; what the verb ends with when not.
///
/// # Errors
/// As [`Consent::ask`].
pub(super) fn agreed(consent: Consent, question: &str) -> anyhow::Result<Option<ExitCode>> {
    Ok(match consent.ask(question)? {
        Answer::Yes => None,
        Answer::DryRun => {
            complain("dry run: nothing was done");
            Some(ExitCode::SUCCESS)
        }
        Answer::No => {
            complain("nothing was done");
            Some(ExitCode::FAILURE)
        }
    })
}

/// Asks a question whose answer is yes or no; everything but a clear yes is a no.
///
/// # Errors
/// [`Unconfirmed`], or when the terminal cannot be read.
pub fn confirm(question: &str, yes: bool) -> anyhow::Result<Answer> {
    if yes {
        return Ok(Answer::Yes);
    }
    let input = io::stdin();
    if !input.is_terminal() {
        return Err(Unconfirmed.into());
    }
    let begun = Instant::now();
    let answer = read(question, &mut input.lock(), &mut io::stderr().lock());
    answered(begun.elapsed());
    Ok(answer?)
}

fn read(question: &str, input: &mut impl BufRead, talk: &mut impl Write) -> io::Result<Answer> {
    write!(talk, "{question} [y/N] ")?;
    talk.flush()?;
    let mut line = String::new();
    input.read_line(&mut line)?;
    Ok(match line.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Answer::Yes,
        _ => Answer::No,
    })
}

/// The operating system's user, for the record of operations: `USER`, `LOGNAME`, or the login name of the user id; by number
/// where there is none, as in some containers.
#[must_use]
pub fn operator() -> String {
    let named = ["USER", "LOGNAME"].into_iter().find_map(|key| std::env::var(key).ok().filter(|name| !name.is_empty()));
    let uid = rustix::process::getuid().as_raw();
    let listed = || login(&std::fs::read_to_string("/etc/passwd").unwrap_or_default(), uid).map(str::to_owned);
    named.or_else(listed).unwrap_or_else(|| format!("uid {uid}"))
}

/// The login name of a user id, in the text of `/etc/passwd`.
fn login(passwd: &str, uid: u32) -> Option<&str> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        (fields.nth(1)?.parse() == Ok(uid)).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(typed: &str) -> (Answer, String) {
        let mut talk = Vec::new();
        let answer = read("Skip it?", &mut typed.as_bytes(), &mut talk).expect("memory can be read");
        (answer, String::from_utf8(talk).expect("text"))
    }

    // Guarantee: commands.preview
    #[test]
    fn only_a_clear_yes_is_a_yes() {
        for typed in ["y\n", "Y\n", "yes\n", " YES \n", "y"] {
            assert_eq!(answer(typed).0, Answer::Yes, "{typed:?}");
        }
        for typed in ["", "\n", "n\n", "no\n", "yep\n", "booking_sms\n", "\u{1b}[A\n"] {
            assert_eq!(answer(typed).0, Answer::No, "{typed:?}");
        }
        assert_eq!(answer("y\n").1, "Skip it? [y/N] ");
    }

    // Guarantee: commands.operator
    #[test]
    fn login_name_is_found_by_user_id() {
        let passwd = "root:x:0:0:root:/root:/bin/bash\n\nbroken\nada:x:1000:1000::/home/ada:/bin/sh\n";
        assert_eq!(login(passwd, 0), Some("root"));
        assert_eq!(login(passwd, 1000), Some("ada"));
        assert_eq!(login(passwd, 10001), None);
    }

    #[test]
    fn a_dry_run_asks_nobody_and_yes_is_not_asked_again() {
        let consent = Consent { yes: false, dry_run: true };
        assert_eq!(consent.ask("?").expect("no question"), Answer::DryRun);
        assert_eq!(confirm("?", true).expect("no question"), Answer::Yes);
    }
}
