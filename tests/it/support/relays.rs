//! Relays under test: in this process, where a test can look into them, or as real processes, where it can kill them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use outbox_relay::cli::run::limits;
use outbox_relay::config::{Config, Environment};
use outbox_relay::relay::engine::Engine;
use outbox_relay::relay::supervisor;
use outbox_relay::sink::kafka::Cluster;
use outbox_testkit::startup::private;
use rustix::process::{Pid, Signal, kill_process};
use tokio::task::JoinHandle;

use super::PATIENCE;
use super::servers::Database;

/// Parses a configuration: `[postgres]` for this database and role, `[kafka]` when `kafka` names servers, then `relays`.
pub fn config(database: &Database, role: &str, kafka: Option<&str>, relays: &str) -> Config {
    parse(&toml(database, role, kafka, relays))
}

/// Parses the text of a configuration.
pub fn parse(toml: &str) -> Config {
    Config::parse(toml, "test.toml", &environment()).unwrap_or_else(|problems| panic!("{problems}"))
}

/// The text of a configuration for this database and role.
pub fn toml(database: &Database, role: &str, kafka: Option<&str>, relays: &str) -> String {
    toml_of(&database.url(role), kafka, relays)
}

/// The text of a configuration for this URL.
pub fn toml_of(url: &str, kafka: Option<&str>, relays: &str) -> String {
    let join = if url.contains('?') { '&' } else { '?' };
    let mut text = format!("[postgres]\nurl = \"{url}{join}sslmode=disable\"\n");
    if let Some(servers) = kafka {
        let _ = write!(text, "[kafka]\nbootstrap_servers = \"{servers}\"\n");
    }
    text.push_str("[admin]\nlisten = \"127.0.0.1:0\"\n");
    text.push_str(relays);
    text
}

fn environment() -> Environment {
    Environment::from([("OUTBOX_RELAY_ALLOW_LOSS".to_owned(), "1".to_owned())])
}

/// A relay to Kafka of `public.bookings`, keyed by customer, with a text payload; `more` is added below `[[relay]]`.
pub fn kafka_relay(name: &str, topic: &str, more: &str) -> String {
    format!(
        "[[relay]]\nname = \"{name}\"\n{more}\n[relay.source.stream]\ntable = \"public.bookings\"\n\
         [relay.sink.kafka]\ntopic = \"{topic}\"\nkey = \"customer\"\npayload = {{ column = \"payload\" }}\n"
    )
}

/// A replica inside this process.
pub struct Replica {
    pub engine: Arc<Engine>,
    task: JoinHandle<()>,
}

impl Replica {
    /// Starts the configured relays as the replica `name`.
    pub fn start(config: &Config, name: &str) -> Self {
        let limits = limits(&config.relays);
        let cluster = config.kafka.clone().map(|kafka| Arc::new(Cluster::new(kafka)));
        let engine = Arc::new(Engine::new(&config.postgres, limits, name.to_owned(), cluster, &config.relays).unwrap());
        let task = tokio::spawn(supervisor::run(Arc::clone(&engine), config.relays.clone()));
        Self { engine, task }
    }

    /// Drains and ends.
    pub async fn stop(self) {
        self.engine.stop.cancel();
        self.task.await.unwrap();
    }
}

/// A replica as a real process, with its configuration and log in a directory of its own.
pub struct Process {
    child: tokio::process::Child,
    pub dir: tempfile::TempDir,
    pub pid: i32,
}

impl Process {
    /// `outbox-relay --config … ARGS` with this configuration text.
    pub fn spawn(toml: &str, args: &[&str]) -> Self {
        Self::spawn_with(toml, args, &[])
    }

    /// The same, with further environment variables.
    pub fn spawn_with(toml: &str, args: &[&str], environment: &[(&str, String)]) -> Self {
        Self::spawn_program(Path::new(env!("CARGO_BIN_EXE_outbox-relay")), toml, args, environment)
    }

    /// The same of another program that is built on the library.
    pub fn spawn_program(program: &Path, toml: &str, args: &[&str], environment: &[(&str, String)]) -> Self {
        Self::spawn_command(tokio::process::Command::new(program), toml, args, environment)
    }

    /// The same by a command with arguments of its own, which stand first.
    pub fn spawn_command(
        mut command: tokio::process::Command,
        toml: &str,
        args: &[&str],
        environment: &[(&str, String)],
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("outbox-relay.toml");
        private(&file, toml).unwrap();
        let log = std::fs::File::create(dir.path().join("log")).unwrap();
        let out = std::fs::File::create(dir.path().join("out")).unwrap();
        let child = command
            .arg("--config")
            .arg(&file)
            .args(args)
            .env("OUTBOX_RELAY_ALLOW_LOSS", "1")
            // To read the system's authorities takes 70 ms of processor time, and a replica that has an HTTP client reads them.
            // No test needs one of them; those of its own it names.
            .env("SSL_CERT_FILE", "/dev/null")
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let pid = i32::try_from(child.id().unwrap()).unwrap();
        Self { child, dir, pid }
    }

    /// Its process id.
    pub fn id(&self) -> i32 {
        self.pid
    }

    /// Sends a signal; one that a process acts on, once it does: one that has just started would be ended by it.
    pub fn signal(&self, signal: Signal) {
        if matches!(signal, Signal::TERM | Signal::INT) {
            let end = Instant::now() + PATIENCE;
            while !self.acts_on(signal) {
                assert!(Instant::now() < end, "the process does not act on {signal:?}:\n{}", self.log());
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        kill_process(Pid::from_raw(self.pid).unwrap(), signal).unwrap();
    }

    /// Whether it has a handler for a signal, or has ended.
    fn acts_on(&self, signal: Signal) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let caught = field("SigCgt:").map_or(0, |mask| u64::from_str_radix(mask, 16).unwrap());
        field("State:").is_none_or(|state| state.starts_with('Z')) || caught >> (signal.as_raw() - 1) & 1 == 1
    }

    /// Waits for its end and answers the exit code; none when a signal ended it.
    pub async fn wait(&mut self) -> Option<i32> {
        self.child.wait().await.unwrap().code()
    }

    /// As [`wait`](Self::wait), with the signal that ended it.
    pub async fn ended(&mut self) -> ExitStatus {
        self.child.wait().await.unwrap()
    }

    /// What it has logged so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap()
    }

    /// What it has printed so far.
    pub fn out(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("out")).unwrap()
    }

    /// Where its configuration is.
    pub fn config(&self) -> PathBuf {
        self.dir.path().join("outbox-relay.toml")
    }
}

/// A test that fails shows what its replicas said last.
impl Drop for Process {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let log = std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        println!("process {}, the last lines of its log:", self.pid);
        lines[lines.len().saturating_sub(30)..].iter().for_each(|line| println!("  {line}"));
    }
}

/// Runs the program to its end: exit code, standard output, standard error.
pub async fn outbox_relay(toml: &str, args: &[&str]) -> (Option<i32>, String, String) {
    let mut process = Process::spawn(toml, args);
    let code = process.wait().await;
    (code, process.out(), process.log())
}
