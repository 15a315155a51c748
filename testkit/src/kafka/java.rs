//! Java and the jars that a real broker is made of.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use super::super::startup::is_trusted;
use super::super::watchdog::{Program, Signal};

/// Names the directory with the broker's jars, instead of what is found.
pub const JARS: &str = "OUTBOX_RELAY_KAFKA_JARS";

/// What the broker's Java is made for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Java {
    /// A quick start and little memory, at a third of the speed: for tests and the demo.
    #[default]
    Brief,
    /// Full speed: both compilers, and the heap and collector that Kafka's own start script asks for.
    Lasting,
}

impl Java {
    fn args(self) -> &'static [&'static str] {
        match self {
            Self::Brief => &["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"],
            Self::Lasting => &["-Xms1g", "-Xmx1g", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"],
        }
    }
}

/// Java with the jars; `archive` is that of their classes, which only a brief one makes and uses.
pub(super) fn program(
    kind: Java,
    jars: &Path,
    log: &Path,
    archive: Option<String>,
    main: &[&str],
) -> anyhow::Result<Program> {
    let java = match std::env::var_os("JAVA_HOME") {
        Some(home) => PathBuf::from(home).join("bin/java"),
        None => {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let found = std::env::split_paths(&path).map(|dir| dir.join("java")).find(|java| java.is_file());
            found.context("Java is not installed: Apache Kafka needs 17 or newer (`make deps-test` installs it)")?
        }
    };
    let mut args: Vec<String> = archive.into_iter().collect();
    args.extend(kind.args().iter().map(|&arg| arg.to_owned()));
    args.push("-XX:-UsePerfData".into());
    args.push("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn".into());
    args.extend(["-cp".to_owned(), format!("{}/*", jars.display())]);
    args.extend(main.iter().map(|&arg| arg.to_owned()));
    Ok(Program { path: java, args, env: Vec::new(), log: log.to_owned(), user: None, stop: Signal::TERM })
}

/// The class-data archive, beside the jars that it belongs to; the JVM ignores one that does not fit.
pub(super) fn archive(jars: &Path) -> PathBuf {
    jars.with_file_name("kafka.jsa")
}

pub(super) fn archive_use(jars: &Path) -> Option<String> {
    let archive = archive(jars);
    archive.is_file().then(|| format!("-XX:SharedArchiveFile={}", archive.display()))
}

/// The jars: as told, or `kafka/libs` in the build directory that this program lies in, or in `target`; none that another user may have
/// put there, because they are run.
pub(super) fn jars() -> anyhow::Result<PathBuf> {
    if let Some(dir) = std::env::var_os(JARS).map(PathBuf::from) {
        ensure!(dir.is_dir(), "{JARS}={} is no directory", dir.display());
        return Ok(dir);
    }
    let program = std::env::current_exe()?;
    let beside = program.ancestors().map(|dir| dir.join("kafka"));
    let found =
        beside.chain([PathBuf::from("target/kafka")]).find(|dir| dir.join("pom.xml").is_file() && is_trusted(dir));
    let found = found.with_context(|| {
        format!(
            "The jars of Apache Kafka are missing: `make deps-test` fetches them, or name their directory in {JARS}"
        )
    })?;
    Ok(std::path::absolute(found.join("libs"))?)
}
