//! Running a program for what it prints, within bounds of time and length.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};

use crate::visible::words;

/// How long a command may take: one that asks a cloud provider takes a second or two.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);
/// How long output is read on when the command has ended: a process that it started may hold it open.
const LINGER: Duration = Duration::from_millis(500);
/// Longer than every signed password.
const LONGEST: usize = 64 << 10;
/// How much of its standard error an error of ours has.
const LONGEST_ERROR: usize = 300;

/// What the command prints.
pub(super) async fn run(argv: &[String]) -> Result<Vec<u8>, String> {
    let [program, args @ ..] = argv else { return Err("no program is named".to_owned()) };
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // What a shell has started is ended with it.
    command.process_group(0).kill_on_drop(true);
    let mut child = command.spawn().map_err(|error| format!("cannot be started: {error}"))?;
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let Ok(finished) = tokio::time::timeout(TIMEOUT, finished(&mut child)).await else {
        if let Some(group) = group {
            // It may have ended by itself meanwhile.
            let _ = kill_process_group(group, Signal::KILL);
        }
        return Err(format!("not done after {TIMEOUT:?}"));
    };
    let (status, printed, said) = finished.map_err(|error| format!("its output cannot be read: {error}"))?;
    if !status.success() {
        let said = words(String::from_utf8_lossy(&said).trim(), LONGEST_ERROR);
        return Err(format!("ended with {status}{}{said}", if said.is_empty() { "" } else { ": " }));
    }
    if printed.len() > LONGEST {
        return Err(format!("printed more than {LONGEST} bytes"));
    }
    Ok(printed)
}

/// How it ended, and the begin of its output and standard error.
async fn finished(child: &mut Child) -> std::io::Result<(ExitStatus, Vec<u8>, Vec<u8>)> {
    let (mut stdout, mut stderr) = (child.stdout.take(), child.stderr.take());
    let (mut printed, mut said) = (Vec::new(), Vec::new());
    let status = {
        let reading = async { tokio::try_join!(drain(&mut stdout, &mut printed), drain(&mut stderr, &mut said)) };
        tokio::pin!(reading);
        tokio::select! {
            read = &mut reading => {
                read?;
                child.wait().await?
            }
            status = child.wait() => {
                if let Ok(read) = tokio::time::timeout(LINGER, &mut reading).await {
                    read?;
                }
                status?
            }
        }
    };
    Ok((status, printed, said))
}

/// Reads to the end, so that the process never waits for a reader, and keeps little more than [`LONGEST`].
async fn drain(from: &mut Option<impl AsyncRead + Unpin>, kept: &mut Vec<u8>) -> std::io::Result<()> {
    let Some(from) = from else { return Ok(()) };
    let mut part = [0; 4096];
    loop {
        match from.read(&mut part).await? {
            0 => return Ok(()),
            read if kept.len() <= LONGEST => kept.extend_from_slice(&part[..read]),
            _ => {}
        }
    }
}
