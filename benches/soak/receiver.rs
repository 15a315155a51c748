//! Who receives: what has arrived, in streams that keep order.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use outbox_relay::position::Timestamp;
use outbox_testkit::consumer::{Consumer, Received};
use outbox_testkit::delivery::{Delivery, Gap};
use outbox_testkit::gateway::{Behaviour, Gateway};
use outbox_testkit::kafka::create_topic;
use outbox_testkit::provider::{Answer, Provider};

use super::draw::{Draw, Sink};
use super::replicas::RELAY;
use super::stage::Access;

const PARTITIONS: i32 = 3;

/// See the module.
#[derive(Debug)]
pub enum Receiver {
    /// A consumer of the topic; with shards each key is a stream, otherwise each partition.
    Kafka { consumer: Consumer, by_key: bool },
    /// The gateway.
    Sms(Gateway),
    /// The provider.
    Http(Provider),
    /// What the replicas have printed.
    Stdout(PathBuf),
}

/// What has arrived.
#[derive(Clone, Debug, Default)]
pub struct Arrived {
    /// In order of arrival.
    pub streams: BTreeMap<i32, Vec<Delivery>>,
    /// What the channel has lost.
    pub gaps: Vec<Gap>,
}

impl Receiver {
    /// Starts it; answers also what the configuration calls it.
    pub async fn start(draw: &Draw, access: &Access, out: &Path) -> anyhow::Result<(Self, String)> {
        Ok(match draw.sink {
            Sink::Kafka => {
                create_topic(&access.broker, &access.database, PARTITIONS, &[]).await?;
                let consumer = Consumer::start(&access.broker, &access.database).await?;
                (Self::Kafka { consumer, by_key: draw.shards > 1 }, access.database.clone())
            }
            Sink::Sms => {
                let gateway = Gateway::start().await?;
                let url = gateway.base_url();
                (Self::Sms(gateway), url)
            }
            Sink::Http => {
                let provider = Provider::start(|_| Answer::Accept).await?;
                let url = provider.url();
                (Self::Http(provider), url)
            }
            Sink::Stdout => {
                std::fs::File::create(out)?;
                (Self::Stdout(out.to_owned()), String::new())
            }
        })
    }

    /// Everything that has arrived by now.
    pub async fn arrived(&self) -> anyhow::Result<Arrived> {
        Ok(match self {
            Self::Kafka { consumer, by_key } => {
                consumer.catch_up(Duration::from_secs(20)).await?;
                let gaps = consumer.look(|received| received.gaps.clone());
                let streams = consumer.look(|received| if *by_key { by_keys(received) } else { received.streams() });
                Arrived { streams, gaps }
            }
            Self::Sms(gateway) => {
                let id = |body: &str| body.split(' ').nth(1).unwrap_or_default().to_owned();
                one(gateway.accepted().iter().map(|sms| Delivery { id: id(&sms.body), created_at: None }).collect())
            }
            Self::Http(provider) => {
                let prefix = format!("{RELAY}/");
                let accepted = provider.received().into_iter().filter(|received| received.is_accepted());
                let id = |key: &str| key.strip_prefix(&prefix).unwrap_or(key).to_owned();
                one(accepted.map(|received| Delivery { id: id(&received.request.key), created_at: None }).collect())
            }
            Self::Stdout(out) => one(printed(&String::from_utf8_lossy(&std::fs::read(out)?))),
        })
    }

    /// Whether it hangs or refuses from now on; Kafka is the stage's and not told here.
    pub fn misbehave(&self, refuse: bool) {
        match self {
            Self::Sms(gateway) if refuse => gateway.behave(Behaviour::Refuse { status: 503, retry_after: None }),
            Self::Sms(gateway) => gateway.behave(Behaviour::Hang),
            Self::Http(provider) if refuse => provider.decide(|_| Answer::Refuse(503)),
            Self::Http(provider) => {
                provider.decide(|request| if request.attempt % 2 == 0 { Answer::Hang } else { Answer::Lose })
            }
            Self::Kafka { .. } | Self::Stdout(_) => {}
        }
    }

    /// It accepts everything again.
    pub fn heal(&self) {
        match self {
            Self::Sms(gateway) => gateway.behave(Behaviour::Accept),
            Self::Http(provider) => provider.decide(|_| Answer::Accept),
            Self::Kafka { .. } | Self::Stdout(_) => {}
        }
    }
}

impl Arrived {
    /// The ids, each once.
    pub fn ids(&self) -> HashSet<&str> {
        self.streams.values().flatten().map(|delivery| delivery.id.as_str()).collect()
    }

    /// The ids that came more than once.
    pub fn repeated(&self) -> Vec<&str> {
        let mut times: HashMap<&str, usize> = HashMap::new();
        for delivery in self.streams.values().flatten() {
            *times.entry(&delivery.id).or_default() += 1;
        }
        times.into_iter().filter(|(_, times)| *times > 1).map(|(id, _)| id).collect()
    }
}

fn one(deliveries: Vec<Delivery>) -> Arrived {
    Arrived { streams: BTreeMap::from([(0, deliveries)]), gaps: Vec::new() }
}

/// One stream for each key: with shards nothing else is in order.
fn by_keys(received: &Received) -> BTreeMap<i32, Vec<Delivery>> {
    let (mut numbers, mut streams) = (HashMap::new(), BTreeMap::<i32, Vec<Delivery>>::new());
    for record in received.partitions.values().flatten() {
        let next = i32::try_from(numbers.len()).unwrap_or(i32::MAX);
        let number = *numbers.entry(record.key.clone()).or_insert(next);
        let delivery = Delivery { id: record.id.clone(), created_at: record.created_at };
        streams.entry(number).or_default().push(delivery);
    }
    streams
}

/// The lines of all replicas. One that was killed may leave half a line, which the next line then follows.
fn printed(text: &str) -> Vec<Delivery> {
    let start = format!("{{\"relay\":\"{RELAY}\",");
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().filter_map(|line| parse(&line[line.rfind(&start)?..])).collect()
}

fn parse(line: &str) -> Option<Delivery> {
    let value: serde_json::Value = serde_json::from_str(line).ok()?;
    let created_at = value["created_at"].as_str().and_then(|at| Timestamp::parse_rfc3339(at).ok());
    Some(Delivery { id: value["id"].as_str()?.to_owned(), created_at })
}
