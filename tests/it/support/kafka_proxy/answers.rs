//! What becomes of a broker's answers on their way to the client.

use std::collections::HashMap;
use std::ops::Range;

/// Where an answer has an error code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Produce,
    MetadataTopic,
    MetadataPartition,
    Versions,
    ProducerId,
    DescribeConfigs,
    /// What a consumer asks.
    Fetch,
    FetchPartition,
    Offsets,
    Coordinator,
    /// What a client that authenticates asks.
    SaslHandshake,
    SaslAuthenticate,
}

impl Place {
    /// Of the Kafka protocol.
    fn key(self) -> i16 {
        match self {
            Self::Produce => 0,
            Self::MetadataTopic | Self::MetadataPartition => 3,
            Self::Versions => 18,
            Self::ProducerId => 22,
            Self::DescribeConfigs => 32,
            Self::Fetch | Self::FetchPartition => 1,
            Self::Offsets => 2,
            Self::Coordinator => 10,
            Self::SaslHandshake => 17,
            Self::SaslAuthenticate => 36,
        }
    }

    /// Where the code stands in an answer of this version, which begins with the correlation id; none when it is not about the topic.
    fn find(self, answer: &[u8], version: i16, topic: &str) -> Option<Range<usize>> {
        let named = || answer.windows(topic.len()).position(|bytes| bytes == topic.as_bytes());
        let flexible = |from, short: usize, long: usize| if version >= from { short } else { long };
        let at = match self {
            Self::Produce => named()? + topic.len() + flexible(9, 1, 4) + 4,
            Self::MetadataTopic => named()? - flexible(9, 1, 2) - 2,
            Self::MetadataPartition => named()? + topic.len() + flexible(10, 16, 0) + 1 + flexible(9, 1, 4),
            Self::Versions => 4,
            Self::ProducerId => 4 + flexible(2, 1, 0) + 4,
            Self::DescribeConfigs => 4 + 4 + 4,
            Self::Fetch => 4 + flexible(12, 1, 0) + 4,
            // Topics have ids in place of names from version 13 on.
            Self::FetchPartition if version >= 13 => 4 + 1 + 4 + 2 + 4 + 1 + 16 + 1 + 4,
            Self::FetchPartition => named()? + topic.len() + flexible(12, 1, 4) + 4,
            Self::Offsets => named()? + topic.len() + flexible(6, 1, 4) + 4,
            Self::Coordinator => 4 + flexible(3, 1, 0) + flexible(1, 4, 0),
            Self::SaslHandshake | Self::SaslAuthenticate => 4,
        };
        (at + 2 <= answer.len()).then_some(at..at + 2)
    }
}

/// What an answer says that it does not have, where a broker always has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    Brokers,
    Topics,
    Partitions,
    RecordErrors,
    Versions,
    NameOfConfig,
}

impl Absent {
    /// Makes it absent in a frame that answers a request of this key and version; answers whether it did.
    fn make(self, frame: &mut [u8], (key, version): (i16, i16), topic: &str) -> bool {
        let find = |place: Place| {
            let asked = place.key() == key && version >= 9;
            asked.then(|| place.find(&frame[4..], version, topic)).flatten().map(|code| code.start + 4)
        };
        // A count is one more than there are, in these versions, and zero for none at all.
        let (count, rest) = match self {
            Self::Brokers => ((key == 3 && version >= 9).then_some(13), false),
            Self::Topics => (find(Place::MetadataTopic).map(|code| code - 1), true),
            Self::Partitions => (find(Place::MetadataPartition).map(|code| code - 1), true),
            Self::RecordErrors => (find(Place::Produce).map(|code| code + 2 + 8 + 8 + 8), false),
            Self::Versions => ((key == Place::Versions.key()).then_some(10), false),
            Self::NameOfConfig => {
                let name = frame.windows(topic.len()).position(|bytes| bytes == topic.as_bytes());
                let entry = name.filter(|_| key == Place::DescribeConfigs.key()).map(|at| at + topic.len() + 4);
                // Its length is of two bytes.
                return entry.is_some_and(|at| {
                    frame[at..at + 2].fill(0xff);
                    true
                });
            }
        };
        let Some(at) = count else { return false };
        // Of what follows nothing is there either.
        let end = if rest { frame.len() } else { at + 1 };
        frame[at..end].fill(0);
        true
    }
}

/// What an answer to a produce request is about in place of what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elsewhere {
    Topic,
    Partition,
}

impl Elsewhere {
    /// Makes the answer a success, and one for something else; answers whether it did.
    fn tell(self, frame: &mut [u8], version: i16, topic: &str) -> bool {
        let Some(code) = Place::Produce.find(&frame[4..], version, topic) else { return false };
        let code = code.start + 4;
        frame[code..code + 2].fill(0);
        let Some(named) = frame.windows(topic.len()).position(|bytes| bytes == topic.as_bytes()) else { return false };
        match self {
            Self::Topic => frame[named] ^= 1,
            Self::Partition => frame[code - 1] = 1,
        }
        true
    }
}

/// What an answer to a client that authenticates has, in versions 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sasl {
    /// A session that lasts so many milliseconds.
    Lifetime(i64),
    /// The first message of SCRAM, with a nonce that is longer by so many bytes.
    LongNonce(usize),
}

impl Sasl {
    const KEY: i16 = 36;

    /// Makes it so; answers whether it did.
    fn tell(self, frame: &mut Vec<u8>, nonce: &[u8]) -> bool {
        match self {
            Self::Lifetime(lifetime) => {
                let at = frame.len() - 8;
                frame[at..].copy_from_slice(&lifetime.to_be_bytes());
            }
            Self::LongNonce(bytes) => {
                let mut first = [b"r=", nonce].concat();
                first.resize(first.len() + bytes, b'x');
                first.extend_from_slice(b",s=QUFBQQ==,i=4096");
                // Correlation id, no error, no message, and a session without end.
                let mut answer = [&frame[4..8], &[0, 0, 0xff, 0xff]].concat();
                answer.extend_from_slice(&u32::try_from(first.len()).unwrap().to_be_bytes());
                answer.extend_from_slice(&[&first[..], &[0; 8]].concat());
                *frame = [&u32::try_from(answer.len()).unwrap().to_be_bytes()[..], &answer].concat();
            }
        }
        true
    }
}

/// What a client asks who wants to send metrics, and may then send; brokers have it when they are told where to put metrics.
const TELEMETRY: [i16; 2] = [71, 72];
/// What such brokers have in its place here: a producer does not ask for them.
const SPARE: [u8; 2] = [12, 13];

/// Has the list of what the broker can do say that it takes metrics, every so many milliseconds; answers whether it said how often.
fn tell_interval(frame: &mut Vec<u8>, key: i16, interval: i32) -> bool {
    if key == Place::Versions.key() {
        for (spare, key) in SPARE.into_iter().zip(TELEMETRY) {
            // Its key and its lowest version, which is 0.
            let at = frame[11..].windows(4).position(|bytes| bytes == [0, spare, 0, 0]);
            if let Some(at) = at {
                frame[11 + at..13 + at].copy_from_slice(&key.to_be_bytes());
            }
        }
    }
    if key != TELEMETRY[0] {
        return false;
    }
    // Correlation id, no throttling and no error, an id, a subscription, no compression, the interval, the limit, no metrics.
    let mut answer = [&frame[4..8], &[0; 7], &[7; 16], &[0, 0, 0, 1, 1]].concat();
    answer.extend_from_slice(&interval.to_be_bytes());
    answer.extend_from_slice(&[0, 1, 0, 0, 0, 1, 0]);
    *frame = [&u32::try_from(answer.len()).unwrap().to_be_bytes()[..], &answer].concat();
    true
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub enum Answers {
    /// As the broker gives them.
    #[default]
    Honest,
    /// With this code. A produce request is spoiled, so that the broker does not store it.
    Coded { place: Place, topic: String, code: i16 },
    /// Produce requests are answered as stored, but elsewhere; they are spoiled, so that the broker does not store them.
    Elsewhere { elsewhere: Elsewhere, topic: String },
    /// Those to a client that authenticates.
    Sasl(Sasl),
    /// Metrics are wanted every so many milliseconds.
    Interval(i32),
    /// The list of what the broker can do lacks what idempotent producers need.
    NotIdempotent,
    /// All that say something of this topic lack something.
    Without { absent: Absent, topic: String },
    /// Some with other bytes than the broker's.
    Garbled(fastrand::Rng),
}

/// The requests of a connection that are without an answer: key and version by correlation id; and the client's last nonce.
#[derive(Default)]
pub struct Asked(HashMap<[u8; 4], (i16, i16)>, Vec<u8>);

impl Asked {
    /// A request begins with key, version and correlation id.
    pub fn note(&mut self, request: &[u8]) {
        let Some([key @ .., v1, v2, c1, c2, c3, c4]) = request.first_chunk::<8>() else { return };
        self.0.insert([*c1, *c2, *c3, *c4], (i16::from_be_bytes(*key), i16::from_be_bytes([*v1, *v2])));
        if i16::from_be_bytes(*key) == Sasl::KEY {
            let nonce = request.windows(3).position(|bytes| bytes == b",r=").map_or(request.len(), |at| at + 3);
            self.1 = request[nonce..].to_vec();
        }
    }

    /// Whether this answers a produce request.
    pub fn is_produce(&self, answer: &[u8]) -> bool {
        let asked = answer.first_chunk::<4>().and_then(|id| self.0.get(id));
        asked.is_some_and(|(key, _)| *key == Place::Produce.key())
    }

    fn take(&mut self, answer: &[u8]) -> Option<(i16, i16)> {
        self.0.remove(answer.first_chunk::<4>()?)
    }
}

impl Answers {
    /// Whether a produce request is to be spoiled.
    pub fn spoils(&self) -> bool {
        matches!(self, Self::Coded { place: Place::Produce, .. } | Self::Elsewhere { .. })
    }

    /// Alters a frame, which begins with its length; answers whether it did.
    pub fn alter(&mut self, frame: &mut Vec<u8>, asked: &mut Asked) -> bool {
        let question = asked.take(&frame[4..]);
        match self {
            Self::Honest => false,
            Self::Coded { place, topic, code } => {
                let Some((key, version)) = question else { return false };
                let found = (key == place.key()).then(|| place.find(&frame[4..], version, topic)).flatten();
                let Some(at) = found else { return false };
                frame[at.start + 4..at.end + 4].copy_from_slice(&code.to_be_bytes());
                true
            }
            Self::Elsewhere { elsewhere, topic } => question
                .is_some_and(|(key, version)| key == Place::Produce.key() && elsewhere.tell(frame, version, topic)),
            Self::Sasl(sasl) => question.is_some_and(|(key, _)| key == Sasl::KEY) && sasl.tell(frame, &asked.1),
            Self::Interval(interval) => question.is_some_and(|(key, _)| tell_interval(frame, key, *interval)),
            Self::NotIdempotent => {
                if question.is_none_or(|(key, _)| key != Place::Versions.key()) {
                    return false;
                }
                // Its key and its lowest version, which is 0; from now on it is the key of nothing.
                let entry = [0, 22, 0, 0];
                let Some(at) = frame[10..].windows(entry.len()).position(|bytes| bytes == entry) else { return false };
                frame[10 + at] = 0x70;
                true
            }
            Self::Without { absent, topic } => question.is_some_and(|asked| absent.make(frame, asked, topic)),
            Self::Garbled(random) => garble(frame, random),
        }
    }
}

/// One frame of three gets one to eight other bytes, rarely in its length. An address stays what it is: clients would
/// connect to whatever it became.
fn garble(frame: &mut [u8], random: &mut fastrand::Rng) -> bool {
    if random.u8(0..3) > 0 {
        return false;
    }
    let address = b"127.0.0.1";
    let kept: Vec<_> = frame.windows(address.len()).enumerate().filter(|(_, bytes)| *bytes == address).collect();
    let kept: Vec<_> = kept.into_iter().map(|(at, _)| at.saturating_sub(2)..at + address.len()).collect();
    let first = if random.u8(0..50) == 0 { 0 } else { 4 };
    for _ in 0..random.usize(1..=8) {
        let at = random.usize(first..frame.len());
        if !kept.iter().any(|kept| kept.contains(&at)) {
            frame[at] = if random.bool() { frame[at] ^ (1 << random.u8(0..8)) } else { *random.choice(&ODD).unwrap() };
        }
    }
    true
}

/// Bytes that lengths and counts do badly with.
const ODD: [u8; 6] = [0x00, 0x01, 0x7f, 0x80, 0xfe, 0xff];
