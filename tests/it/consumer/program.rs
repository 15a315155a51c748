//! The page's programs as processes: compiled as they stand, started, killed.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use tempfile::TempDir;
use tokio::process::Child;

use crate::support::PATIENCE;
use crate::support::pages::{blocks, page};

/// Where scripts/consumer-kit has put what they need, and where the broker's jars are.
pub fn kit() -> (PathBuf, PathBuf) {
    let program = std::env::current_exe().unwrap();
    let targets = program.ancestors().map(Path::to_owned).chain([std::path::absolute("target").unwrap()]);
    let target = targets.into_iter().find(|dir| dir.join("consumer/complete").is_file());
    let target = target.expect("what consumers need is missing: `make deps-consumers` fetches it");
    let jars = std::env::var_os("OUTBOX_RELAY_KAFKA_JARS").map_or_else(|| target.join("kafka/libs"), PathBuf::from);
    assert!(jars.is_dir(), "{} is missing: `make deps-test` fetches the jars", jars.display());
    (target.join("consumer"), jars)
}

/// A language of the page.
#[derive(Clone, Copy, Debug)]
pub enum Language {
    Java,
    TypeScript,
}

/// A consumer, with its directory.
pub struct Program {
    language: Language,
    kit: PathBuf,
    jars: PathBuf,
    dir: TempDir,
    environment: Vec<(&'static str, String)>,
}

/// One run of it; killed when it is dropped.
pub struct Run(Child);

impl Run {
    /// SIGKILL.
    pub async fn kill(mut self) {
        self.0.kill().await.unwrap();
    }

    /// Waits until it ends by itself.
    pub async fn ended(mut self) -> ExitStatus {
        tokio::time::timeout(PATIENCE * 3, self.0.wait()).await.expect("it ends").unwrap()
    }
}

impl Program {
    /// The program of the page, with `edit` for those who want to see it fail; its compiler has no complaint.
    pub fn new(
        language: Language,
        edit: impl FnOnce(&str) -> String,
        environment: Vec<(&'static str, String)>,
    ) -> Self {
        let (kit, jars) = kit();
        let dir = tempfile::tempdir().unwrap();
        let page = page("consumers");
        let (tag, file) = match language {
            Language::Java => ("java", "Invoices.java"),
            Language::TypeScript => ("typescript", "consumer.ts"),
        };
        let [source] = blocks(&page, tag)[..] else { panic!("the page has one program in {tag}") };
        std::fs::write(dir.path().join(file), edit(source)).unwrap();
        let program = Self { language, kit, jars, dir, environment };
        let compiled = program
            .compiler()
            .current_dir(&program.dir)
            .output()
            .expect("Java 17 or newer, and node (`make deps-test deps-consumers`)");
        let said =
            format!("{}{}", String::from_utf8_lossy(&compiled.stdout), String::from_utf8_lossy(&compiled.stderr));
        assert!(compiled.status.success() && said.is_empty(), "{said}");
        program
    }

    fn compiler(&self) -> Command {
        match self.language {
            Language::Java => {
                // The compiler is a module of the runtime that the broker needs too: nothing more to install.
                let mut java = java();
                java.args(["-m", "jdk.compiler/com.sun.tools.javac.Main", "-Xlint:all", "-Werror", "--release", "17"]);
                java.arg("-cp").arg(self.jars.join("kafka-clients-4.3.0.jar")).arg("Invoices.java");
                java
            }
            Language::TypeScript => {
                std::os::unix::fs::symlink(self.kit.join("node_modules"), self.dir.path().join("node_modules"))
                    .unwrap();
                for file in ["package.json", "tsconfig.json"] {
                    std::fs::copy(Path::new("tests/consumer").join(file), self.dir.path().join(file)).unwrap();
                }
                let mut node = Command::new(self.kit.join("bin/node"));
                // The compiler would leave a cache in the directory for temporary files.
                node.env("NODE_DISABLE_COMPILE_CACHE", "1").args(["node_modules/typescript/bin/tsc", "--project", "."]);
                node
            }
        }
    }

    /// Starts it; what it says is added to what it has said before.
    pub fn start(&self) -> Run {
        let mut command = match self.language {
            Language::Java => {
                let mut java = java();
                java.args(["-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]);
                java.arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn").arg("-cp");
                java.arg(format!("{}/*:{}/*:.", self.jars.display(), self.kit.join("java").display())).arg("Invoices");
                java
            }
            Language::TypeScript => {
                let mut node = Command::new(self.kit.join("bin/node"));
                node.arg("consumer.ts");
                node
            }
        };
        let log = File::options().create(true).append(true).open(self.dir.path().join("log")).unwrap();
        command.current_dir(&self.dir).envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        Run(tokio::process::Command::from(command).kill_on_drop(true).spawn().expect("it starts"))
    }

    /// Everything that its runs have said.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap()
    }

    /// How often it has met a copy.
    pub fn again(&self) -> usize {
        self.log().lines().filter(|line| line.starts_with("again: bookings/")).count()
    }
}

/// Java, as the broker has it.
pub fn java() -> Command {
    let home = std::env::var_os("JAVA_HOME").map(|home| PathBuf::from(home).join("bin/java"));
    Command::new(home.unwrap_or_else(|| "java".into()))
}
