//! librdkafka's in-process broker.

use anyhow::Context as _;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::DefaultProducerContext;

/// The broker inside this process; other processes reach it by TCP as any broker.
pub struct MockBroker {
    cluster: MockCluster<'static, DefaultProducerContext>,
}

impl std::fmt::Debug for MockBroker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MockBroker").field("bootstrap_servers", &self.bootstrap_servers()).finish()
    }
}

impl MockBroker {
    /// Starts it.
    ///
    /// # Errors
    /// librdkafka's.
    pub fn start() -> anyhow::Result<Self> {
        Ok(Self { cluster: MockCluster::new(1).context("Cannot start librdkafka's in-process broker")? })
    }

    /// Its address.
    #[must_use]
    pub fn bootstrap_servers(&self) -> String {
        self.cluster.bootstrap_servers()
    }

    /// Makes a topic.
    ///
    /// # Errors
    /// librdkafka's.
    pub fn create_topic(&self, name: &str, partitions: i32) -> anyhow::Result<()> {
        self.cluster.create_topic(name, partitions, 1).with_context(|| format!("Cannot create topic {name}"))
    }

    /// For scripted faults: request errors, round trips, brokers down and up.
    #[must_use]
    pub fn cluster(&self) -> &MockCluster<'static, DefaultProducerContext> {
        &self.cluster
    }
}
