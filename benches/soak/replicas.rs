//! The relay under test: its configuration, its processes, and its verbs.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use outbox_testkit::gateway::{ACCOUNT_SID, AUTH_TOKEN};
use outbox_testkit::watchdog::{Process, Program, Signal, Watchdog, describe};

use super::draw::{Draw, Sink};
use super::journal::Journal;

/// The relay's name, and its cursor's.
pub const RELAY: &str = "storm";
/// What they read.
pub const CONFIG: &str = "relay.toml";
/// Without it the rule that loses rows is refused; for a configuration that does not ask for that rule it means nothing.
const ALLOW_LOSS: (&str, &str) = ("OUTBOX_RELAY_ALLOW_LOSS", "1");
/// How often it is looked whether all of them run.
const LOOK: Duration = Duration::from_millis(500);
/// One that ends by itself is not started again sooner after its start.
const PAUSE: Duration = Duration::from_secs(1);
/// Longer than the grace period of `run`.
const DRAIN: Duration = Duration::from_secs(30);

/// The replicas of a storm. Dropped, they are killed.
#[derive(Debug)]
pub struct Replicas {
    watchdog: Watchdog,
    all: Vec<Replica>,
    journal: Journal,
}

#[derive(Debug)]
struct Replica {
    program: Program,
    process: Process,
    stopped: bool,
    started: Instant,
}

/// The text of the configuration; `target` is the receiver's address, or the topic.
pub fn config(draw: &Draw, postgres: &str, broker: &str, target: &str) -> String {
    let mut text =
        format!("[postgres]\nurl = \"{postgres}\"\n[admin]\nlisten = \"127.0.0.1:0\"\n[shutdown]\ngrace = \"5s\"\n");
    if draw.sink == Sink::Kafka {
        let _ = writeln!(text, "[kafka]\nbootstrap_servers = \"{broker}\"");
    }
    let _ = writeln!(text, "[[relay]]\nname = \"{RELAY}\"\nstart = \"beginning\"");
    if draw.at_most_once {
        text.push_str("guarantee = \"at_most_once\"\n");
    }
    if draw.shards > 1 {
        let _ = writeln!(text, "shards = {}", draw.shards);
    }
    if let Some(window) = draw.window {
        let _ = writeln!(text, "latency_window = \"{window}ms\"");
    }
    let _ = writeln!(
        text,
        "[relay.source.stream]\ntable = \"public.bookings\"\n[relay.turn]\ndeadline = \"{}s\"",
        draw.deadline
    );
    if let Some(rows) = draw.turn_rows.filter(|_| matches!(draw.sink, Sink::Kafka | Sink::Stdout)) {
        let _ = writeln!(text, "rows = {rows}");
    }
    if let Some(poll) = draw.poll {
        let _ = writeln!(text, "[relay.poll]\nmin = \"{poll}ms\"");
    }
    text.push_str(&match draw.sink {
        Sink::Kafka => format!(
            "[relay.sink.kafka]\ntopic = \"{target}\"\nkey = \"customer\"\npayload = {{ column = \"payload\" }}\n"
        ),
        Sink::Sms => format!(
            "[relay.sink.sms]\nprovider = \"twilio\"\nbase_url = \"{target}\"\naccount_sid = \"{ACCOUNT_SID}\"\n\
             auth_token = \"{AUTH_TOKEN}\"\nfrom = \"+15550000000\"\nto = \"{{{{ phone }}}}\"\n\
             text = \"Booking {{{{ id }}}} confirmed\"\n"
        ),
        Sink::Http => format!("[relay.sink.http]\nurl = \"{target}/bookings/{{{{ id }}}}\"\n"),
        Sink::Stdout => "[relay.sink.stdout]\n".to_owned(),
    });
    text
}

impl Replicas {
    /// Starts so many of them; their logs go into `dir`, and what they print is appended to `out`.
    pub fn start(count: usize, relay: &Path, dir: &Path, out: &Path, journal: &Journal) -> anyhow::Result<Self> {
        let mut watchdog = Watchdog::start("soak")?;
        let mut all = Vec::new();
        for number in 1..=count {
            let run = [dir.join(CONFIG).display().to_string(), format!("replica-{number}")];
            let script = "out=$1 relay=$2; exec \"$relay\" --config \"$3\" run --replica-id \"$4\" >>\"$out\"";
            let paths = [out.display().to_string(), relay.display().to_string()];
            let args = ["-c".to_owned(), script.to_owned(), "sh".to_owned()].into_iter().chain(paths).chain(run);
            let program = Program {
                path: PathBuf::from("sh"),
                args: args.collect(),
                env: vec![(ALLOW_LOSS.0.to_owned(), ALLOW_LOSS.1.to_owned())],
                log: dir.join(format!("replica-{number}.log")),
                user: None,
                stop: Signal::KILL,
            };
            let process = watchdog.spawn(&program)?;
            all.push(Replica { program, process, stopped: false, started: Instant::now() });
        }
        Ok(Self { watchdog, all, journal: journal.clone() })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Kills one, or has it drain, and starts it again.
    pub async fn end(&mut self, index: usize, signal: Signal) -> anyhow::Result<()> {
        let replica = &mut self.all[index];
        if replica.stopped {
            return Ok(());
        }
        if replica.process.is_running() {
            replica.process.signal(signal)?;
        }
        if let Err(late) = self.watchdog.reap(&mut replica.process, DRAIN).await {
            self.journal.count("not_drained", format!("replica {}: {late}", index + 1));
            replica.process.signal(Signal::KILL)?;
            self.watchdog.reap(&mut replica.process, DRAIN).await?;
        }
        replica.process = self.watchdog.spawn(&replica.program)?;
        replica.started = Instant::now();
        Ok(())
    }

    /// Stops one where it stands, or has it go on; answers whether it did.
    pub fn freeze(&mut self, index: usize, stop: bool) -> anyhow::Result<bool> {
        let replica = &mut self.all[index];
        if replica.stopped == stop || !replica.process.is_running() {
            return Ok(false);
        }
        replica.process.signal(if stop { Signal::STOP } else { Signal::CONT })?;
        replica.stopped = stop;
        Ok(true)
    }

    /// Starts those again that have ended by themselves, for example because PostgreSQL was away when they began.
    pub async fn revive(&mut self) -> anyhow::Result<()> {
        let ended = |replica: &Replica| !replica.process.is_running() && replica.started.elapsed() > PAUSE;
        for (index, replica) in self.all.iter_mut().enumerate().filter(|(_, replica)| ended(replica)) {
            let status = self.watchdog.reap(&mut replica.process, DRAIN).await?;
            self.journal.count("ended_itself", format!("replica {}: {}", index + 1, describe(status)));
            replica.process = self.watchdog.spawn(&replica.program)?;
            replica.started = Instant::now();
        }
        Ok(())
    }

    /// Looks after them until it is dropped, or fails.
    pub async fn keep_running(&mut self) -> anyhow::Error {
        loop {
            if let Err(error) = self.revive().await {
                return error;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// All go on, and run.
    pub async fn heal(&mut self) -> anyhow::Result<()> {
        for index in 0..self.all.len() {
            self.freeze(index, false)?;
        }
        self.revive().await
    }

    /// Kills them all; reaped, they are no zombies for the hours to come.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        for replica in &mut self.all {
            if replica.process.is_running() {
                replica.process.signal(Signal::KILL)?;
            }
            self.watchdog.reap(&mut replica.process, DRAIN).await?;
        }
        self.watchdog.stop().await
    }
}

/// How a verb ended, and what it said.
#[derive(Clone, Debug)]
pub struct Said {
    /// Its exit code; none when a signal ended it.
    pub code: Option<i32>,
    /// Its result.
    pub out: String,
    /// Its talk.
    pub told: String,
}

/// Runs a verb to its end with this configuration, which may take so long.
pub async fn ask(relay: &Path, config: &Path, args: &[&str], longest: Duration) -> anyhow::Result<Said> {
    let mut command = tokio::process::Command::new(relay);
    let command = command.arg("--config").arg(config).args(args).env(ALLOW_LOSS.0, ALLOW_LOSS.1);
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output();
    let output = tokio::time::timeout(longest, output).await.context("the verb does not end")??;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(Said { code: output.status.code(), out: text(&output.stdout), told: text(&output.stderr) })
}

/// Runs a verb to its end with this configuration; answers what it said when it succeeded.
pub async fn verb(relay: &Path, config: &Path, args: &[&str]) -> anyhow::Result<String> {
    let Said { code, out, told } = ask(relay, config, args, DRAIN).await?;
    anyhow::ensure!(code == Some(0), "outbox-relay {} ({code:?}): {out}{told}", args.join(" "));
    Ok(out)
}
