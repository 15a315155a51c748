//! Which partition a key belongs to: as Kafka's own clients say, so that their consumers and producers agree with us.

/// What follows when a keyed topic has another number of partitions than its cursor knows: from then on a key's rows
/// go to another partition than before, where consumers may read them before the older ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnPartitionChange {
    /// The relay halts until an operator accepts it.
    #[default]
    Halt,
    /// The relay goes on with the new number.
    Continue,
}

/// The partition of a key among `partitions`: murmur2 with Kafka's seed, its sign bit cut off, modulo.
/// (Apache Kafka, `org.apache.kafka.common.utils.Utils.murmur2` and `toPositive`.)
pub(super) fn of(key: &[u8], partitions: i32) -> i32 {
    let hash = i32::from_ne_bytes((murmur2(key) & 0x7fff_ffff).to_ne_bytes());
    hash % partitions.max(1)
}

/// MurmurHash2 of Austin Appleby, 32 bits, with the seed that Kafka uses.
fn murmur2(data: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    const SEED: u32 = 0x9747_b28c;
    // The algorithm takes the length as 32 bits; a key is far shorter.
    let mut hash = SEED ^ u32::try_from(data.len()).unwrap_or(u32::MAX);
    let mut words = data.chunks_exact(4);
    for word in &mut words {
        let mut k = word.iter().rev().fold(0_u32, |k, byte| k << 8 | u32::from(*byte)).wrapping_mul(M);
        k ^= k >> 24;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        hash ^= rest.iter().rev().fold(0_u32, |k, byte| k << 8 | u32::from(*byte));
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^ hash >> 15
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values stand in Apache Kafka's own test of this function (`UtilsTest.testMurmur2`).
    #[test]
    fn keys_hash_as_in_kafkas_own_clients() {
        for (key, hash) in [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            ("abc", 479_470_107),
        ] {
            assert_eq!(murmur2(key.as_bytes()).cast_signed(), hash, "{key}");
        }
    }

    #[test]
    fn a_partition_always_exists() {
        for key in [&b""[..], b"a", b"\xff\xff\xff\xff"] {
            assert_eq!(of(key, 1), 0);
            assert!((0..7).contains(&of(key, 7)));
        }
    }
}
