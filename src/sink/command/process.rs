//! The processes of one command: how they start, and that they end.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, waitpgid, waitpid};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::runtime::Handle;

use super::Program;
use super::{starter, strays};

/// Between a fork and its exec nothing can be set without unsafe code, so these programs set it in the new process and
/// then become the one that is meant: there is no moment in which that runs without its limits.
pub(super) const LAUNCHERS: [&str; 2] = ["/usr/bin/setpriv", "/usr/bin/prlimit"];

/// How long killed processes may take to be gone. One that hangs in the kernel takes longer, and is not waited for.
const GONE: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(10);

/// The largest file that a program may write. A larger one ends it with SIGXFSZ.
const FILE_SIZE: u64 = 4 << 30;

/// A program and what it has started: its process group, and what has left that. Dropped, it is killed.
#[derive(Debug)]
pub(super) struct Group {
    /// None when it is reaped.
    child: Option<Child>,
    leader: Pid,
    /// What the environment of all its processes begins with.
    mark: String,
    /// Processes that had left the group, and were killed.
    strays: Vec<Pid>,
}

/// The program's ends.
#[derive(Debug)]
pub(super) struct Pipes {
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
}

impl Group {
    /// Starts the program.
    pub(super) async fn start(program: &Program) -> io::Result<(Self, Pipes)> {
        let mut command = Command::new(LAUNCHERS[0]);
        let mark = strays::mark();
        command
            // It ends with the thread that starts it, which is therefore one that lives as long as this process.
            .args(["--pdeathsig", "KILL", "--no-new-privs", "--", LAUNCHERS[1]])
            .arg(format!("--as={}", program.memory))
            .arg(format!("--cpu={}", cpu_seconds(program.timeout)))
            .arg(format!("--fsize={FILE_SIZE}"))
            .args(["--core=0", "--"])
            .arg(&program.program)
            .args(&program.args)
            .env_clear()
            .env(strays::VARIABLE, &mark)
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        starter::start(move || Self::spawn(command, mark)).await
    }

    fn spawn(mut command: Command, mark: String) -> io::Result<(Self, Pipes)> {
        // The Kafka client opens pipes that a program would inherit.
        close_fds::set_fds_cloexec(3, &[]);
        let mut child = command.spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take()).zip(child.stderr.take());
        let leader = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let (Some(((stdin, stdout), stderr)), Some(leader)) = (pipes, leader) else {
            return Err(io::Error::other("the new process has no pipes"));
        };
        Ok((Self { child: Some(child), leader, mark, strays: Vec::new() }, Pipes { stdin, stdout, stderr }))
    }

    /// Waits until the program itself has ended.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        match &mut self.child {
            Some(child) => child.wait().await,
            None => Err(io::Error::other("the process is reaped")),
        }
    }

    /// SIGTERM to all of the group.
    pub(super) fn ask_to_end(&self) {
        self.signal(Signal::TERM);
    }

    /// SIGKILL to all of the group, also when the program itself has ended: what it left behind goes with it, and so does
    /// what has left the group.
    pub(super) fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.strays.extend(strays::kill(&self.mark));
    }

    fn signal(&self, signal: Signal) {
        // The number is the group's as long as one process is in it. When there is none, there is no such group.
        let _ = kill_process_group(self.leader, signal);
    }

    /// After [`Self::kill`]: leaves no zombie.
    pub(super) async fn reap(mut self) {
        if let Some(child) = self.child.take() {
            reap(child, self.leader, std::mem::take(&mut self.strays)).await;
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let Some(child) = self.child.take() else { return };
        self.kill();
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(reap(child, self.leader, std::mem::take(&mut self.strays)));
        }
    }
}

/// How many seconds of CPU each process may use: all cores for all of its time.
fn cpu_seconds(timeout: Duration) -> u64 {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (timeout.as_secs() + 2) * cores as u64
}

async fn reap(mut child: Child, leader: Pid, strays: Vec<Pid>) {
    let all = async {
        let _ = child.wait().await;
        // As process 1 of a container the relay inherits what its children leave, and nobody else would reap it.
        loop {
            match waitpgid(leader, WaitOptions::NOHANG) {
                Ok(Some(_)) => {}
                Ok(None) => tokio::time::sleep(LOOK).await,
                Err(_) => break,
            }
        }
        for stray in strays {
            while let Ok(None) = waitpid(Some(stray), WaitOptions::NOHANG) {
                tokio::time::sleep(LOOK).await;
            }
        }
    };
    let _ = tokio::time::timeout(GONE, all).await;
}
