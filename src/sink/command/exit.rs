//! What follows from how a command ended.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use crate::sink::{Class, Failure, Subject};
use crate::visible::visible;

/// `EX_TEMPFAIL` of sysexits.h.
const TRY_AGAIN: i32 = 75;
/// By the convention of shells, launchers and the dynamic linker: not executable, and not found.
const UNAVAILABLE: [i32; 2] = [126, 127];

const FIX_PROGRAM: &str = "Fix the program, its interpreter or its libraries, or raise its memory: it must start for the \
                            relay's user, in the relay's container";

/// A name that is not in the configuration.
pub(super) fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a String>) -> Failure {
    let known = known.map(String::as_str).collect::<Vec<_>>().join(", ");
    let message = visible(&format!("The schedule names the command {name:?}, and this relay has {known}"));
    let hint = "Correct the schedule's column command, or add [relay.sink.command.programs.NAME]";
    Failure::of(Class::Poison, "unknown_command", message, hint)
}

/// Its file cannot be executed.
pub(super) fn unavailable(name: &str, problem: &str) -> Failure {
    let message = visible(&format!("The command {name} cannot be started: {problem}"));
    Failure::of(Class::Fatal, "command_unavailable", message, FIX_PROGRAM)
}

/// The system has not made a process of it.
pub(super) fn unstarted(name: &str, error: &std::io::Error) -> Failure {
    let message = format!("The command {name} cannot be started: {error}");
    let hint = "See whether the machine has processes, memory and descriptors left; it is retried";
    Failure::of(Class::Retry, "command_not_started", message, hint).about(Subject::Message)
}

/// It was stopped.
pub(super) fn late(name: &str, limit: Duration, last: &str) -> Failure {
    let message = format!("The command {name} was ended after {limit:?}{}", said(last));
    let hint = "Make it faster, or raise the schedule's timeout and that of the program in the configuration";
    Failure::of(Class::Poison, "command_timeout", message, hint)
}

/// 0 is done; everything else is not.
pub(super) fn judge(name: &str, status: ExitStatus, last: &str) -> Result<(), Failure> {
    let said = said(last);
    let Some(code) = status.code() else {
        let signal = status.signal().unwrap_or_default();
        let message = format!("The command {name} was ended by signal {signal}{said}");
        let hint = "See the program's own log, and whether its memory in the configuration is enough";
        return Err(Failure::of(Class::Poison, "command_failed", message, hint));
    };
    if code == 0 {
        return Ok(());
    }
    let message = format!("The command {name} ended with exit code {code}{said}");
    Err(match code {
        TRY_AGAIN => {
            let hint = "The program asks to be retried (exit code 75); when it lasts, see its own log";
            Failure::of(Class::Retry, "command_busy", message, hint).about(Subject::Message)
        }
        _ if UNAVAILABLE.contains(&code) => Failure::of(Class::Fatal, "command_unavailable", message, FIX_PROGRAM),
        _ => {
            let hint = "See the program's own log; it may have done a part of its work";
            Failure::of(Class::Poison, "command_failed", message, hint)
        }
    })
}

fn said(last: &str) -> String {
    if last.is_empty() { String::new() } else { format!("; it said: {last}") }
}
