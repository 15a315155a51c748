//! Processes of a command that have left its process group, for example by `setsid`: found by a variable that they inherit.
//!
//! A program that changes its environment on purpose is not found: it is the operator's own, and this is no sandbox.

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// The only variable of a program.
pub(super) const VARIABLE: &str = "OUTBOX_RELAY_COMMAND";
/// A process may start another one while it is looked for.
const ROUNDS: usize = 5;

/// A value of [`VARIABLE`] that no other command has.
pub(super) fn mark() -> String {
    format!("{:016x}{:016x}", fastrand::u64(..), fastrand::u64(..))
}

/// Kills the processes with this mark; their ids. Those of a process group that is being killed may be among them.
pub(super) fn kill(mark: &str) -> Vec<Pid> {
    let mut killed = Vec::new();
    for _ in 0..ROUNDS {
        let found: Vec<Pid> = marked(mark).into_iter().filter(|pid| !killed.contains(pid)).collect();
        if found.is_empty() {
            break;
        }
        for pid in found {
            // The descriptor stays with its process: if that is still the marked one, no stranger is killed.
            if let Ok(process) = pidfd_open(pid, PidfdFlags::empty())
                && is_marked(pid, mark)
                && pidfd_send_signal(&process, Signal::KILL).is_ok()
            {
                killed.push(pid);
            }
        }
    }
    killed
}

fn marked(mark: &str) -> Vec<Pid> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
    pids.filter(|pid| is_marked(*pid, mark)).collect()
}

/// The environments of other users' processes cannot be read; those of the program's, which gains no privileges, can.
fn is_marked(pid: Pid, mark: &str) -> bool {
    let wanted = format!("{VARIABLE}={mark}");
    std::fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero()))
        .is_ok_and(|environment| environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes()))
}
