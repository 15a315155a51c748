//! Replicas: real processes of `outbox-relay run` beside each other, which the demo may kill.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::Context as _;

use super::startup::{self, free_port, private, tail};
use super::watchdog::{Process, Program, Signal, Watchdog, describe};

/// From the start of the first until they do what they are there for.
const START: Duration = Duration::from_secs(30);

/// Longer than the grace period of `run`.
const DRAIN: Duration = Duration::from_secs(25);

/// A command that reads and ends.
const ONCE: Duration = Duration::from_secs(60);

const CONFIG: &str = "outbox-relay.toml";

#[derive(Debug)]
pub(super) struct Replicas {
    watchdog: Watchdog,
    all: Vec<Replica>,
    wanted: usize,
}

/// The product stands beside this program, where cargo puts both.
fn relay() -> anyhow::Result<PathBuf> {
    let this = std::env::current_exe().context("Cannot find the directory of this program, where outbox-relay is")?;
    let relay = this.with_file_name("outbox-relay");
    anyhow::ensure!(relay.exists(), "{} is missing: run make demo, or cargo build --bin outbox-relay", relay.display());
    Ok(relay)
}

#[derive(Debug)]
struct Replica {
    name: String,
    process: Process,
    program: Program,
    ended: Option<ExitStatus>,
}

/// What a command ended with, and what it printed.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    pub(super) output: String,
}

impl Replicas {
    /// Makes their directory; nothing runs yet.
    pub(super) fn prepare(wanted: usize) -> anyhow::Result<Self> {
        Ok(Self { watchdog: Watchdog::start("demo")?, all: Vec::new(), wanted })
    }

    pub(super) fn dir(&self) -> &Path {
        self.watchdog.dir()
    }

    /// What those that start from now on read.
    pub(super) fn configure(&self, config: &str) -> anyhow::Result<()> {
        Ok(private(&self.dir().join(CONFIG), config)?)
    }

    /// Starts them all with this configuration.
    pub(super) fn start(&mut self, config: &str) -> anyhow::Result<()> {
        self.configure(config)?;
        let dir = self.dir().to_owned();
        let file = dir.join(CONFIG);
        let relay = relay()?;
        for number in 1..=self.wanted {
            let name = format!("replica-{number}");
            let args = ["--config", &file.display().to_string(), "run", "--replica-id", &name].map(str::to_owned);
            let program = Program {
                path: relay.clone(),
                args: args.to_vec(),
                env: vec![("OUTBOX_RELAY__ADMIN__LISTEN".into(), format!("127.0.0.1:{}", free_port()?))],
                log: dir.join(format!("{name}.log")),
                user: None,
                // The clean end is `drain`; who comes to the watchdog is beyond that.
                stop: Signal::KILL,
            };
            let process = self.watchdog.spawn(&program)?;
            self.all.push(Replica { name, process, program, ended: None });
        }
        Ok(())
    }

    /// Runs another command of the product with the replicas' configuration, and waits for its end.
    pub(super) async fn once(&mut self, name: &str, args: &[&str]) -> anyhow::Result<Ended> {
        let dir = self.dir().to_owned();
        let config = dir.join(CONFIG).display().to_string();
        let args = ["--config", &config].into_iter().chain(args.iter().copied()).map(str::to_owned);
        let log = dir.join(format!("{name}.log"));
        let program = Program {
            path: relay()?,
            args: args.collect(),
            env: vec![],
            log: log.clone(),
            user: None,
            stop: Signal::KILL,
        };
        let mut process = self.watchdog.spawn(&program)?;
        let status = self.watchdog.reap(&mut process, ONCE).await?;
        Ok(Ended { status, output: std::fs::read_to_string(&log)? })
    }

    /// Name, process id and state of each, for people.
    pub(super) fn states(&self) -> String {
        let one = |replica: &Replica| format!("{} (pid {}) {}", replica.name, replica.process.pid(), replica.state());
        self.all.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    /// Starts one that was killed again, under its name.
    pub(super) fn restart(&mut self, name: &str) -> anyhow::Result<()> {
        let replica = self.all.iter_mut().find(|replica| replica.name == name);
        let replica = replica.with_context(|| format!("There is no replica {name}"))?;
        replica.process = self.watchdog.spawn(&replica.program)?;
        replica.ended = None;
        Ok(())
    }

    /// Whether all that were not killed are at work.
    pub(super) fn are_running(&self) -> bool {
        self.all.iter().all(|replica| replica.ended.is_some() || replica.process.is_running())
    }

    /// Kills one with SIGKILL and waits until it is gone: it sends nothing any more.
    pub(super) async fn kill9(&mut self, name: &str) -> anyhow::Result<u32> {
        let replica = self.all.iter_mut().find(|replica| replica.name == name);
        let replica = replica.with_context(|| format!("There is no replica {name}"))?;
        replica.process.signal(Signal::KILL)?;
        replica.ended = Some(self.watchdog.reap(&mut replica.process, DRAIN).await?);
        Ok(replica.process.pid())
    }

    /// Ends all that still run with SIGTERM, and waits. Answers what went wrong.
    pub(super) async fn drain(&mut self) -> anyhow::Result<Vec<String>> {
        let mut wrong = Vec::new();
        let running: Vec<&mut Replica> = self.all.iter_mut().filter(|replica| replica.ended.is_none()).collect();
        for replica in &running {
            if replica.process.is_running() {
                replica.process.signal(Signal::TERM)?;
            } else {
                wrong.push(format!("{} had ended before it was told to", replica.name));
            }
        }
        for replica in running {
            let status = self.watchdog.reap(&mut replica.process, DRAIN).await?;
            if !status.success() {
                let log = tail(&replica.program.log);
                wrong.push(format!("{} ended with {}; its log ends with:\n{log}", replica.name, describe(status)));
            }
            replica.ended = Some(status);
        }
        Ok(wrong)
    }

    /// Waits until something that they do is seen; `not_yet` says what is missing when it never is.
    pub(super) async fn until(
        &self,
        not_yet: &'static str,
        seen: impl AsyncFn() -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        let attempt = async || {
            anyhow::ensure!(seen().await?, not_yet);
            Ok(())
        };
        let waited = startup::until(START, || self.are_running(), attempt).await;
        waited.with_context(|| format!("The replicas do not work; their logs end with:\n{}", self.log_tails()))
    }

    pub(super) fn log_tails(&self) -> String {
        let tails = self.all.iter().map(|replica| format!("{}:\n{}", replica.name, tail(&replica.program.log)));
        tails.collect::<Vec<_>>().join("\n")
    }

    pub(super) async fn stop(self) -> anyhow::Result<()> {
        self.watchdog.stop().await
    }
}

impl Replica {
    fn state(&self) -> String {
        match self.ended {
            Some(status) => describe(status),
            None if self.process.is_running() => "running".to_owned(),
            None => "ended by itself".to_owned(),
        }
    }
}
