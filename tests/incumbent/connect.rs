//! Debezium's connector for PostgreSQL, run by Kafka Connect: real processes of Java.

use std::path::{Path, PathBuf};
use std::time::Duration;

use outbox_testkit::startup::{free_port, tail};
use outbox_testkit::watchdog::{Process, Program, Signal, Watchdog};

use crate::support::{Database, PATIENCE, broker, eventually};

/// Java starts, reads 67 jars and connects.
const START: Duration = Duration::from_secs(120);

/// Kafka Connect with one connector; it ends with the test.
pub struct Connect {
    watchdog: Watchdog,
    program: Program,
    process: Process,
}

impl Connect {
    /// Starts it with this connector; it streams when this returns.
    pub async fn start(database: &Database, connector: &str) -> Self {
        let mut watchdog = Watchdog::start("debezium").unwrap();
        let dir = watchdog.dir().to_owned();
        let file = |name: &str, text: &str| {
            std::fs::write(dir.join(name), text).unwrap();
            dir.join(name).display().to_string()
        };
        let worker = worker(&broker().await.bootstrap_servers(), &dir);
        let files = [file("worker.properties", &worker), file("connector.properties", connector)];
        let java =
            std::env::var("JAVA_HOME").map_or_else(|_| PathBuf::from("java"), |home| Path::new(&home).join("bin/java"));
        let flags = ["-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData"].map(str::to_owned);
        let class = [
            "-cp".to_owned(),
            format!("{}/*", jars().display()),
            "org.apache.kafka.connect.cli.ConnectStandalone".to_owned(),
        ];
        let args = [&flags[..], &class, &files].concat();
        let program =
            Program { path: java, args, env: Vec::new(), log: dir.join("log"), user: None, stop: Signal::KILL };
        let process = watchdog.spawn(&program).unwrap();
        let connect = Self { watchdog, program, process };
        connect.streams(database).await;
        connect
    }

    /// Kills it with SIGKILL, and starts it again: it goes on where its file of offsets says.
    pub async fn kill9_and_restart(&mut self, database: &Database) {
        self.process.signal(Signal::KILL).unwrap();
        self.watchdog.reap(&mut self.process, PATIENCE).await.unwrap();
        self.process = self.watchdog.spawn(&self.program).unwrap();
        self.streams(database).await;
    }

    /// Waits until this process has the slot; that of one that was killed may hold it for a while.
    async fn streams(&self, database: &Database) {
        let owner = database.connect("postgres").await;
        let streams = "SELECT count(*) = 1 FROM pg_replication_slots WHERE active AND slot_name = 'debezium'";
        let log = &self.program.log;
        eventually(START, async || {
            assert!(self.process.is_running(), "Kafka Connect has ended:\n{}", tail(log));
            owner.query_one(streams, &[]).await.unwrap().get(0)
        })
        .await;
    }
}

fn jars() -> PathBuf {
    let jars = std::env::var_os("OUTBOX_RELAY_DEBEZIUM_JARS").map(PathBuf::from);
    let jars = jars.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("target/debezium/libs"));
    assert!(jars.is_dir(), "{} is missing: scripts/debezium-jars fetches it", jars.display());
    jars
}

fn worker(servers: &str, dir: &Path) -> String {
    format!(
        "bootstrap.servers={servers}\n\
         key.converter=org.apache.kafka.connect.storage.StringConverter\n\
         value.converter=org.apache.kafka.connect.storage.StringConverter\n\
         offset.storage.file.filename={}\n\
         offset.flush.interval.ms=1000\n\
         listeners=http://127.0.0.1:{}\n\
         plugin.discovery=only_scan\n",
        dir.join("offsets").display(),
        free_port().unwrap(),
    )
}
