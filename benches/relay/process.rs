//! Relays as real processes, and what they take of the machine.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use outbox_testkit::wait;
use rustix::process::{Pid, Signal, kill_process};

use super::stage::Way;

/// What Linux calls a second in these files, whatever the kernel's own clock is.
pub const TICKS: f64 = 100.0;

/// A replica as a process of its own, with its files in a directory of its own. Dropping it kills it.
#[derive(Debug)]
pub struct Process {
    child: Child,
    dir: tempfile::TempDir,
}

/// What a process has used so far.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// Processor seconds, of all threads.
    pub cpu_s: f64,
    /// The most memory it has had, in bytes.
    pub rss_max_bytes: u64,
}

/// One relay of one table to one topic.
#[derive(Clone, Debug)]
pub struct Relay<'a> {
    /// Its name, and its cursor's.
    pub name: &'a str,
    /// The source.
    pub table: &'a str,
    /// The target.
    pub topic: &'a str,
    /// The value of `payload`.
    pub payload: &'a str,
    /// The value of `latency_window`.
    pub window: &'a str,
    /// How many cursors share its rows.
    pub shards: u32,
    /// Further lines of its own table.
    pub lines: &'a str,
}

impl Relay<'_> {
    /// A configuration with this relay alone; `admin` is where it shows its metrics.
    pub fn toml(&self, way: &Way, admin: &str) -> String {
        format!("{}{}", head(way, admin), self.section(""))
    }

    /// Its own part of a configuration; `turn` is what stands in `[relay.turn]`.
    pub fn section(&self, turn: &str) -> String {
        let Self { name, table, topic, payload, window, shards, lines } = self;
        let shards = if *shards > 1 { format!("shards = {shards}\n") } else { String::new() };
        format!(
            "[[relay]]\nname = \"{name}\"\nlatency_window = \"{window}\"\n{shards}{lines}[relay.source.stream]\ntable = \"{table}\"\n\
             [relay.turn]\n{turn}\n[relay.sink.kafka]\ntopic = \"{topic}\"\nkey = \"customer\"\npayload = {payload}\n"
        )
    }
}

/// What stands before the relays.
pub fn head(way: &Way, admin: &str) -> String {
    let Way { url, servers } = way;
    format!("[postgres]\nurl = \"{url}\"\n[kafka]\nbootstrap_servers = \"{servers}\"\n[admin]\nlisten = \"{admin}\"\n")
}

/// Processor seconds of all threads of the process in a directory like `/proc/self`.
fn cpu_s(proc: &str) -> anyhow::Result<f64> {
    let stat = std::fs::read_to_string(format!("{proc}/stat"))?;
    // After the name, which ends with the last parenthesis, come state (field 3) and the others; 14 and 15 are ticks.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: u64 = [11, 12].iter().filter_map(|&field| fields.get(field)?.parse::<u64>().ok()).sum();
    Ok(ticks as f64 / TICKS)
}

/// What this process, as a client of nothing but one server, takes for its rows.
#[derive(Clone, Copy, Debug)]
pub struct Raw {
    /// Rows a second.
    pub rows_per_second: f64,
    /// Processor seconds for a million rows.
    pub cpu_s_per_million: f64,
}

/// Begins when the first row may.
#[derive(Debug)]
pub struct Stopwatch {
    begun: Instant,
    cpu_s: f64,
}

impl Stopwatch {
    /// Starts.
    pub fn start() -> anyhow::Result<Self> {
        Ok(Self { cpu_s: cpu_s(OWN)?, begun: Instant::now() })
    }

    /// Stops behind the last row.
    pub fn stop(self, rows: u64) -> anyhow::Result<Raw> {
        let (seconds, cpu_s) = (self.begun.elapsed().as_secs_f64(), cpu_s(OWN)? - self.cpu_s);
        Ok(Raw { rows_per_second: rows as f64 / seconds, cpu_s_per_million: cpu_s * 1e6 / rows as f64 })
    }
}

const OWN: &str = "/proc/self";

/// A free port of this machine for [`head`].
pub const ANY: &str = "127.0.0.1:0";

impl Process {
    /// Starts `outbox-relay run` as the replica `replica`.
    pub fn start(way: &Way, relay: &Relay<'_>, replica: &str) -> anyhow::Result<Self> {
        Self::spawn(&relay.toml(way, ANY), replica)
    }

    /// The same with a configuration of the caller's.
    pub fn spawn(toml: &str, replica: &str) -> anyhow::Result<Self> {
        let (dir, file) = configured(toml)?;
        let log = std::fs::File::create(dir.path().join("log"))?;
        let child = Command::new(env!("CARGO_BIN_EXE_outbox-relay"))
            .arg("--config")
            .arg(&file)
            .args(["run", "--replica-id", replica])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("outbox-relay does not start")?;
        Ok(Self { child, dir })
    }

    /// Fails when the process has ended, with the end of its log.
    pub fn check(&mut self) -> anyhow::Result<()> {
        self.is_alive().with_context(|| self.log())
    }

    fn is_alive(&mut self) -> anyhow::Result<()> {
        let ended = self.child.try_wait()?;
        ended.map_or(Ok(()), |status| Err(anyhow!("outbox-relay has ended ({status})")))
    }

    /// Waits until something is so, which `what` names. Fails with the end of the log when that takes too long, or when the process
    /// has ended.
    pub async fn until(
        &mut self,
        longest: Duration,
        what: &str,
        reached: impl AsyncFn() -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        let looked = wait::until(longest, what, async || {
            let is_so = reached().await?;
            if !is_so {
                self.is_alive()?;
            }
            Ok(is_so)
        })
        .await;
        looked.with_context(|| self.log())
    }

    /// The end of its log.
    pub fn log(&self) -> String {
        let text = std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }

    /// What it has used so far.
    pub fn usage(&self) -> anyhow::Result<Usage> {
        let proc = format!("/proc/{}", self.child.id());
        let cpu_s = cpu_s(&proc)?;
        let status = std::fs::read_to_string(format!("{proc}/status"))?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
        let kib: u64 = peak.trim().trim_end_matches("kB").trim().parse()?;
        Ok(Usage { cpu_s, rss_max_bytes: kib * 1024 })
    }

    /// Ends it like a crash.
    pub fn kill9(&mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Lets it drain and waits for its end.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).context("no process id")?;
        kill_process(pid, Signal::TERM)?;
        for _ in 0..1_000 {
            if let Some(status) = self.child.try_wait()? {
                anyhow::ensure!(status.success(), "outbox-relay ended with {status}:\n{}", self.log());
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        bail!("outbox-relay does not end:\n{}", self.log())
    }
}

/// A verb that has ended by itself, and what it took.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Its exit code; none when a signal ended it.
    pub code: Option<i32>,
    /// From its start to its end.
    pub seconds: f64,
    /// As it was a few milliseconds before its end.
    pub usage: Usage,
    /// What it has printed.
    pub out: String,
    /// The end of what it has said besides.
    pub told: String,
}

/// Runs another verb to its end, which is to come within `patience`, and watches what it takes.
pub async fn watch(toml: &str, verb: &[&str], patience: Duration) -> anyhow::Result<Ran> {
    let (dir, file) = configured(toml)?;
    let out = dir.path().join("out");
    let child = Command::new(env!("CARGO_BIN_EXE_outbox-relay"))
        .arg("--config")
        .arg(&file)
        .args(verb)
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&out)?)
        .stderr(std::fs::File::create(dir.path().join("log"))?)
        .spawn()
        .context("outbox-relay does not start")?;
    let (mut process, begun) = (Process { child, dir }, Instant::now());
    let mut usage = Usage { cpu_s: 0.0, rss_max_bytes: 0 };
    let status = loop {
        // One that has ended has no memory any more.
        if let Ok(now) = process.usage() {
            usage = now;
        }
        if let Some(status) = process.child.try_wait()? {
            break status;
        }
        let verb = verb.join(" ");
        anyhow::ensure!(begun.elapsed() < patience, "outbox-relay {verb} does not end within {patience:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    let seconds = begun.elapsed().as_secs_f64();
    Ok(Ran { code: status.code(), seconds, usage, out: std::fs::read_to_string(&out)?, told: process.log() })
}

/// Runs another verb to its end.
pub fn run(toml: &str, verb: &[&str]) -> anyhow::Result<()> {
    let (_dir, file) = configured(toml)?;
    let output = Command::new(env!("CARGO_BIN_EXE_outbox-relay")).arg("--config").arg(&file).args(verb).output()?;
    let told = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "outbox-relay {} failed: {told}", verb.join(" "));
    Ok(())
}

fn configured(toml: &str) -> anyhow::Result<(tempfile::TempDir, std::path::PathBuf)> {
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("outbox-relay.toml");
    std::fs::write(&file, toml)?;
    Ok((dir, file))
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
