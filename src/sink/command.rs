//! Starts a program of the configuration for an action of a schedule.
//!
//! Promise: a row of a table chooses a name, never a program or an argument, and what it passes arrives on standard
//! input. A program has bounded time, CPU, memory, file size and output, no variable, no descriptor and no privilege of the
//! relay's but its user's, and when it ends, or the future that waits for it is dropped, its process group is killed, and
//! what has left that.
//! It refuses to publish messages: a program is not a receiver that can be trusted with the repeats of a stream.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::ExitStatus;
use std::time::Duration;

use futures_util::future::{MaybeDone, maybe_done};
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::time::timeout;

use super::{Class, Failure, InvalidSetting};
use crate::message::Field;
use output::{ErrorLines, Kept};
use process::{Group, LAUNCHERS};

mod exit;
mod output;
mod process;
mod starter;
mod strays;

/// Between the request to end and the end without one.
const GRACE: Duration = Duration::from_secs(2);
/// What is in the pipes when a program has ended is read in no time; a process that left the group may keep them open.
const DRAIN: Duration = Duration::from_secs(1);

/// `[relay.sink.command]` of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// What a schedule may name.
    pub programs: BTreeMap<String, Program>,
}

/// `[relay.sink.command.programs.NAME]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Absolute.
    pub program: PathBuf,
    /// The same at every start.
    pub args: Vec<String>,
    /// The longest it may run; a schedule may allow less.
    pub timeout: Duration,
    /// The address space of each of its processes, in bytes.
    pub memory: u64,
    /// How many bytes of its standard output are kept.
    pub output: usize,
}

/// Starts the programs of one relay.
#[derive(Debug)]
pub struct CommandSink {
    programs: BTreeMap<String, Program>,
}

impl CommandSink {
    /// Looks at every program, so that a wrong path is told at the start and not at the first occurrence.
    ///
    /// # Errors
    /// Programs that are not there or cannot be executed, and tools that are missing to start them.
    pub fn new(config: &Config) -> Result<Self, Vec<InvalidSetting>> {
        let programs = config.programs.iter().map(|(name, program)| {
            let key = format!("programs.{name}.program");
            executable(&program.program).map_err(|problem| InvalidSetting { key, problem })
        });
        let tools = LAUNCHERS.iter().map(|tool| {
            executable(Path::new(tool)).map_err(|problem| InvalidSetting {
                key: "programs".to_owned(),
                problem: format!("{problem}; programs are started by it: install the package util-linux"),
            })
        });
        let invalid: Vec<_> = programs.chain(tools).filter_map(Result::err).collect();
        if invalid.is_empty() { Ok(Self { programs: config.programs.clone() }) } else { Err(invalid) }
    }

    /// Nothing is read of a row: the caller has the JSON.
    pub(super) const fn fields(&self) -> &[Field] {
        &[]
    }

    /// What is said to whoever wants to publish messages.
    pub(super) fn refusal() -> Failure {
        let hint = "A command is started by a schedule: read [relay.source.schedule].";
        Failure::of(Class::Fatal, "command_unscheduled", "a command takes no messages of a table", hint)
    }

    /// Runs the program of that name to its end, at most `patience`: JSON in, its standard output out. Each line of its
    /// standard error is told to `progress`. Dropping the future ends the program.
    ///
    /// # Errors
    /// When the name is unknown, the program cannot be started, takes too long, or ends with another code than 0.
    pub async fn run(
        &self,
        name: &str,
        stdin: &[u8],
        patience: Duration,
        progress: &(dyn Fn(&str) + Sync),
    ) -> Result<String, Failure> {
        let Some(program) = self.programs.get(name) else { return Err(exit::unknown(name, self.programs.keys())) };
        // Looked at again: it may be gone since the start.
        executable(&program.program).map_err(|problem| exit::unavailable(name, &problem))?;
        let (mut group, pipes) = Group::start(program).await.map_err(|error| exit::unstarted(name, &error))?;
        let limit = program.timeout.min(patience);
        let (mut output, mut lines) = (Kept::new(program.output), ErrorLines::default());
        let ended = {
            let traffic = async {
                tokio::join!(
                    feed(pipes.stdin, stdin),
                    output.read(pipes.stdout),
                    lines.read(name, pipes.stderr, progress)
                );
            };
            let mut traffic = pin!(maybe_done(traffic));
            let mut ended = timeout(limit, end(&mut group, &mut traffic)).await.ok();
            if ended.is_none() {
                group.ask_to_end();
                // How it ends then is not its result any more.
                let _ = timeout(GRACE, end(&mut group, &mut traffic)).await;
            }
            group.kill();
            let _ = timeout(DRAIN, &mut traffic).await;
            group.reap().await;
            ended.take()
        };
        match ended {
            Some(Ok(status)) => exit::judge(name, status, lines.last()).map(|()| output.text()),
            Some(Err(error)) => Err(exit::unstarted(name, &error)),
            None => Err(exit::late(name, limit, lines.last())),
        }
    }
}

/// Waits for the program's end while its pipes are served: a full one would hold it up indefinitely.
async fn end<F: Future<Output = ()>>(
    group: &mut Group,
    traffic: &mut std::pin::Pin<&mut MaybeDone<F>>,
) -> std::io::Result<ExitStatus> {
    tokio::select! {
        biased;
        status = group.wait() => return status,
        () = traffic.as_mut() => {}
    }
    group.wait().await
}

/// A program that reads nothing, or not all, is in its right.
async fn feed(mut pipe: ChildStdin, json: &[u8]) {
    let _ = pipe.write_all(json).await;
}

fn executable(path: &Path) -> Result<(), String> {
    let shown = path.display();
    let found = std::fs::metadata(path).map_err(|error| format!("{shown} is not there: {error}"))?;
    if !found.is_file() {
        return Err(format!("{shown} is not a file"));
    }
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK)
        .map_err(|error| format!("{shown} cannot be executed by the relay's user: {error}"))
}
