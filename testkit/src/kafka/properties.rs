//! What a real broker is told at its start.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

const PROPERTIES: &str = "\
process.roles=broker,controller
node.id=1
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
broker.session.timeout.ms=1000
broker.heartbeat.interval.ms=200
log.cleaner.dedupe.buffer.size=2097152
num.network.threads=2
num.io.threads=2
background.threads=2
";

/// Asks ACLs.
pub(super) const AUTHORIZER: &str = "\
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
allow.everyone.if.no.acl.found=true
";

/// A killed broker may come back only after its session has ended, so the session is short. One that is never killed asks less
/// often, which is a third of what it costs while nothing happens, and a busy machine does not have it taken for dead.
pub(super) const LEFT_ALONE: &str = "\
broker.session.timeout.ms=9000
broker.heartbeat.interval.ms=500
";

/// A further way into a broker, beside the plain one.
#[derive(Clone, Debug)]
pub struct Listener {
    /// Its name, in small letters and digits.
    pub name: String,
    /// `PLAINTEXT`, `SSL`, `SASL_PLAINTEXT` or `SASL_SSL`.
    pub protocol: &'static str,
    /// The port of 127.0.0.1 that clients are told to come to, when it is not its own: that of a proxy before it.
    pub advertised: Option<u16>,
    /// Its settings, without the prefix `listener.name.….`.
    pub settings: Vec<(&'static str, String)>,
}

/// The text of `server.properties`.
pub(super) fn properties(
    port: u16,
    controller: u16,
    listeners: &[Listener],
    ports: &BTreeMap<String, u16>,
    data: &Path,
) -> String {
    let mut text = PROPERTIES.to_owned();
    let mut addresses = format!("PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}");
    let mut advertised = format!("PLAINTEXT://127.0.0.1:{port}");
    let mut protocols = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT".to_owned();
    for Listener { name, protocol, advertised: told, settings } in listeners {
        let upper = name.to_ascii_uppercase();
        let _ = write!(addresses, ",{upper}://127.0.0.1:{}", ports[name]);
        let _ = write!(advertised, ",{upper}://127.0.0.1:{}", told.unwrap_or(ports[name]));
        let _ = write!(protocols, ",{upper}:{protocol}");
        for (key, value) in settings {
            let _ = writeln!(text, "listener.name.{name}.{key}={value}");
        }
    }
    let _ = write!(
        text,
        "listeners={addresses}\nlistener.security.protocol.map={protocols}\n\
         controller.quorum.voters=1@127.0.0.1:{controller}\nlog.dirs={}\n",
        data.display()
    );
    if listeners.iter().any(|listener| listener.advertised.is_some()) {
        let _ = writeln!(text, "advertised.listeners={advertised}");
    }
    text
}
