//! Brokers: librdkafka's in-process one for the demo, a real Apache Kafka for everything that must be believed.
//!
//! The in-process broker drops data beyond 5 MiB a partition without a word, stores a retried batch twice and knows no
//! fencing; who uses it reads along and looks for gaps (see [`super::consumer`]). The real one needs Java and its jars.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};

mod format;
mod java;
mod mock;
mod properties;

pub use java::{JARS, Java};
use java::{archive, archive_use, jars, program};
pub use mock::MockBroker;
pub use properties::Listener;
use properties::{AUTHORIZER, LEFT_ALONE, properties};

use super::startup::{free_port, tail, until};
use super::watchdog::{Process, Program, Signal, Watchdog};

const START: Duration = Duration::from_secs(60);
/// Where a listener's setting says that an issuer's keys are.
const KEYS_URL: &str = "sasl.oauthbearer.jwks.endpoint.url";
/// The archive that it leaves of its classes.
const NEW_ARCHIVE: &str = "kafka.jsa";

/// How a real broker should be.
#[derive(Clone, Debug, Default)]
pub struct BrokerOptions {
    /// What its Java is made for.
    pub java: Java,
    /// Further ways in.
    pub listeners: Vec<Listener>,
    /// Whether it asks ACLs; what has none is open to everybody.
    pub authorizes: bool,
    /// A directory of classes that its listeners' settings name.
    pub classes: Option<PathBuf>,
    /// Whether it is neither killed nor frozen: its controller and it need not look after each other five times a second.
    pub left_alone: bool,
}

/// A real Apache Kafka broker of one node.
#[derive(Debug)]
pub struct RealBroker {
    watchdog: Watchdog,
    process: Option<Process>,
    program: Program,
    jars: PathBuf,
    port: u16,
    /// The further listeners' ports, by name.
    ports: BTreeMap<String, u16>,
}

impl RealBroker {
    /// Formats a data directory and starts the broker on it; it answers when this returns.
    ///
    /// # Errors
    /// When Java or the jars are missing, or it does not start; the end of its log is part of the error.
    pub async fn start() -> anyhow::Result<Self> {
        Self::start_with(&BrokerOptions::default()).await
    }

    /// The same, with options.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn start_with(options: &BrokerOptions) -> anyhow::Result<Self> {
        let BrokerOptions { java, listeners, authorizes, classes, left_alone } = options;
        let jars = jars()?;
        let mut watchdog = Watchdog::start("kafka")?;
        let dir = watchdog.dir().to_owned();
        let (port, controller) = (free_port()?, free_port()?);
        ensure!(port != controller, "The two free ports found are one; try again");
        let mut ports = BTreeMap::new();
        for listener in listeners {
            ports.insert(listener.name.clone(), free_port()?);
        }
        let mut properties = properties(port, controller, listeners, &ports, &dir.join("data"));
        properties.push_str(if *authorizes { AUTHORIZER } else { "" });
        // Of two values of one name, the last counts.
        properties.push_str(if *left_alone { LEFT_ALONE } else { "" });
        std::fs::write(dir.join("server.properties"), properties)?;

        format::format(&mut watchdog, &jars).await?;

        let main = ["kafka.Kafka", "server.properties"];
        let archive = match java {
            // An archive belongs to a class path.
            Java::Brief if classes.is_none() => Some(
                archive_use(&jars)
                    .unwrap_or_else(|| format!("-XX:ArchiveClassesAtExit={}", dir.join(NEW_ARCHIVE).display())),
            ),
            Java::Brief | Java::Lasting => None,
        };
        let mut program = program(*java, &jars, &dir.join("log"), archive, &main)?;
        let path = program.args.iter_mut().skip_while(|arg| arg.as_str() != "-cp").nth(1);
        if let (Some(path), Some(classes)) = (path, classes) {
            path.push_str(&format!(":{}", classes.display()));
        }
        // Brokers read the keys of an issuer of tokens only from where this says (Kafka 4.0, KIP-1139).
        let settings = listeners.iter().flat_map(|listener| &listener.settings);
        let keys: Vec<_> = settings.filter(|(key, _)| key.ends_with(KEYS_URL)).map(|(_, url)| url.as_str()).collect();
        if !keys.is_empty() {
            program.args.insert(0, format!("-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={}", keys.join(",")));
        }
        let mut broker = Self { watchdog, process: None, program, jars, port, ports };
        broker.restart().await?;
        Ok(broker)
    }

    /// Its address; the same after a restart.
    #[must_use]
    pub fn bootstrap_servers(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The address of a further listener.
    #[must_use]
    pub fn listener(&self, name: &str) -> Option<String> {
        self.ports.get(name).map(|port| format!("127.0.0.1:{port}"))
    }

    /// Where its data is, until the end.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.watchdog.dir()
    }

    /// Makes a topic, with settings of its own such as `max.message.bytes`.
    ///
    /// # Errors
    /// The broker's.
    pub async fn create_topic(&self, name: &str, partitions: i32, settings: &[(&str, &str)]) -> anyhow::Result<()> {
        create_topic(&self.bootstrap_servers(), name, partitions, settings).await
    }

    /// Kills it like a crash, with SIGKILL.
    ///
    /// # Errors
    /// When it does not end.
    pub async fn kill9(&mut self) -> anyhow::Result<()> {
        self.end(Signal::KILL).await
    }

    /// Stops its process where it stands, connections and all; [`Self::thaw`] has it go on.
    ///
    /// # Errors
    /// When it does not run.
    pub fn freeze(&self) -> anyhow::Result<()> {
        self.signal(Signal::STOP)
    }

    /// Has it go on after [`Self::freeze`].
    ///
    /// # Errors
    /// When it does not run.
    pub fn thaw(&self) -> anyhow::Result<()> {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        Ok(self.process.as_ref().context("the broker does not run")?.signal(signal)?)
    }

    /// Stops it if it runs and starts it again on the same port and data.
    ///
    /// # Errors
    /// When it does not answer within a minute.
    pub async fn restart(&mut self) -> anyhow::Result<()> {
        self.end(Signal::TERM).await?;
        let process = self.process.insert(self.watchdog.spawn(&self.program)?);
        let log = &self.program.log;
        let servers = format!("127.0.0.1:{}", self.port);
        let ready = until(START, || process.is_running(), || answers(servers.clone())).await;
        ready.with_context(|| format!("Apache Kafka does not start; its log ends with:\n{}", tail(log)))
    }

    /// Stops it and removes everything but the archive of its classes, which makes the next one start in half the time.
    ///
    /// # Errors
    /// When something of it remains.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.end(Signal::TERM).await?;
        if let Ok(true) = self.new_archive().try_exists() {
            // Copied beside, then renamed: whoever starts meanwhile must not read half of it.
            let partial = self.jars.with_file_name(format!("kafka.jsa.{}", std::process::id()));
            std::fs::copy(self.new_archive(), &partial)?;
            std::fs::rename(&partial, archive(&self.jars))?;
        }
        self.watchdog.stop().await
    }

    fn new_archive(&self) -> PathBuf {
        self.watchdog.dir().join(NEW_ARCHIVE)
    }

    async fn end(&mut self, signal: Signal) -> anyhow::Result<()> {
        let Some(mut process) = self.process.take() else { return Ok(()) };
        if process.is_running() {
            process.signal(signal)?;
        }
        self.watchdog.reap(&mut process, START).await?;
        Ok(())
    }
}

/// Makes a topic on any broker but the in-process one.
///
/// # Errors
/// The broker's.
pub async fn create_topic(servers: &str, name: &str, partitions: i32, settings: &[(&str, &str)]) -> anyhow::Result<()> {
    let admin: AdminClient<DefaultClientContext> = client(servers).create()?;
    let mut topic = NewTopic::new(name, partitions, TopicReplication::Fixed(1));
    for (key, value) in settings {
        topic = topic.set(key, value);
    }
    let options = AdminOptions::new().operation_timeout(Some(Duration::from_secs(10)));
    for result in admin.create_topics([&topic], &options).await? {
        if let Err((topic, code)) = result {
            bail!("Cannot create topic {topic}: {code}");
        }
    }
    // The controller has made it; a broker that has not heard of that yet would tell the first reader otherwise.
    until(START, || true, || readable(servers.to_owned(), name.to_owned(), partitions)).await
}

/// Every partition of the topic answers a reader.
async fn readable(servers: String, topic: String, partitions: i32) -> anyhow::Result<()> {
    let asked = tokio::task::spawn_blocking(move || -> anyhow::Result<()> {
        let consumer: BaseConsumer = client(&servers).create()?;
        for partition in 0..partitions {
            consumer.fetch_watermarks(&topic, partition, Duration::from_secs(5))?;
        }
        Ok(())
    });
    asked.await?
}

/// Deletes a topic on any broker but the in-process one.
///
/// # Errors
/// The broker's.
pub async fn delete_topic(servers: &str, name: &str) -> anyhow::Result<()> {
    let admin: AdminClient<DefaultClientContext> = client(servers).create()?;
    for result in admin.delete_topics(&[name], &AdminOptions::new()).await? {
        if let Err((topic, code)) = result {
            bail!("Cannot delete topic {topic}: {code}");
        }
    }
    Ok(())
}

fn client(servers: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    // A broker that is just starting or gone is expected here: librdkafka need not shout about it.
    config.set("bootstrap.servers", servers).set("log_level", "0").set("reconnect.backoff.ms", "20");
    config
}

async fn answers(servers: String) -> anyhow::Result<()> {
    tokio::net::TcpStream::connect(&servers).await?;
    let asked = tokio::task::spawn_blocking(move || -> anyhow::Result<()> {
        let consumer: BaseConsumer = client(&servers).create()?;
        let metadata = consumer.fetch_metadata(None, Duration::from_secs(5))?;
        ensure!(!metadata.brokers().is_empty(), "The broker names no brokers");
        Ok(())
    });
    asked.await?
}
