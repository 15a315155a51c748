//! Where it was measured.

use std::path::Path;
use std::process::Command;

use serde_json::{Map, Value, json};

use super::stage::Stage;

/// See the module.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Cores that this process may use.
    pub cores: usize,
    /// The processor's name.
    pub cpu: String,
    /// Main memory.
    pub memory_bytes: u64,
    /// PostgreSQL's version.
    pub postgres: String,
    /// The version of Apache Kafka, by the name of its jar.
    pub kafka: Option<String>,
    /// The commit that was measured; `+` stands for changes that are in none.
    pub commit: Option<String>,
}

impl Machine {
    /// Looks.
    pub async fn look(stage: &Stage) -> anyhow::Result<Self> {
        let postgres = stage.owner().await?.query_one("SHOW server_version", &[]).await?.get(0);
        let memory = field("/proc/meminfo", "MemTotal").unwrap_or_default();
        Ok(Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            cpu: field("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            memory_bytes: memory.trim_end_matches("kB").trim().parse::<u64>().unwrap_or(0) * 1024,
            postgres,
            kafka: kafka(),
            commit: commit(),
        })
    }

    /// For people.
    pub fn sentence(&self) -> String {
        let gib = self.memory_bytes as f64 / f64::from(1 << 30);
        format!(
            "{} cores ({}), {gib:.0} GiB, shared by PostgreSQL {} with fsync, Apache Kafka {} and the relay, over the loopback \
             interface",
            self.cores,
            self.cpu,
            self.postgres,
            self.kafka.as_deref().unwrap_or("?")
        )
    }

    /// For programs.
    pub fn facts(&self) -> Map<String, Value> {
        let mut facts = Map::new();
        facts.insert("cores".into(), json!(self.cores));
        facts.insert("cpu".into(), json!(self.cpu));
        facts.insert("memory_bytes".into(), json!(self.memory_bytes));
        facts.insert("postgres".into(), json!(self.postgres));
        facts.extend(self.kafka.iter().map(|kafka| ("kafka".into(), json!(kafka))));
        facts
    }
}

fn field(file: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':'))?;
    Some(value.trim().to_owned())
}

fn kafka() -> Option<String> {
    let told = std::env::var_os(outbox_testkit::kafka::JARS).map(std::path::PathBuf::from);
    let libs = told.unwrap_or_else(|| target().join("kafka/libs"));
    let jars = std::fs::read_dir(libs).ok()?.flatten();
    jars.filter_map(|jar| jar.file_name().into_string().ok())
        .find_map(|name| Some(name.strip_prefix("kafka-clients-")?.strip_suffix(".jar")?.to_owned()))
}

fn commit() -> Option<String> {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).current_dir(env!("CARGO_MANIFEST_DIR")).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|changes| !changes.is_empty());
    Some(if changed { format!("{commit}+") } else { commit })
}

/// The build directory: the program lies in its `release`.
pub fn target() -> &'static Path {
    let program = Path::new(env!("CARGO_BIN_EXE_outbox-relay"));
    program.ancestors().nth(2).unwrap_or(Path::new("target"))
}
