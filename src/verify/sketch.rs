//! The difference of two multisets of keys, at a size that does not depend on theirs. Pure.
//!
//! An invertible Bloom lookup table: each key is added to three cells of its bucket, each with a count, a sum of keys and a sum
//! of checks. What is added by one side and taken away by the other leaves no trace, in whatever order. A cell in which one key
//! is left names it, which is checked; taking it out of its other cells frees further ones, until all are named.
//!
//! Promise: what [`Sketch::decode`] names is in the difference, with its multiplicity, and is all of it except for the parts that
//! it gives back as undecoded; these are to be read again, each with a sketch of its own. (A wrong key would have to fit a check
//! of 61 bits by chance.)

/// Sums are taken modulo this prime, so that every multiplicity can be divided out again.
const PRIME: u64 = (1 << 61) - 1;
/// Cells that each key is added to.
const COPIES: usize = 3;
/// Buckets of a sketch; each is decoded by itself, and read again by itself.
const BUCKETS: usize = 64;
/// Cells of a bucket, a third for each copy: up to about 3,000 differences.
const CELLS: usize = 3 * 1_365;

/// The hash of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(u64);

impl Key {
    /// Of a hash of 64 bits.
    #[must_use]
    pub const fn of(hash: u64) -> Self {
        Self(hash % PRIME)
    }
}

/// The keys whose buckets, sketch within sketch, are these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part(Vec<usize>);

impl Part {
    /// Whether a key belongs to it.
    #[must_use]
    pub fn has(&self, key: Key) -> bool {
        self.0.iter().enumerate().all(|(depth, bucket)| bucket_of(key, depth) == *bucket)
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Sketch {
    part: Part,
    cells: Vec<Cell>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cell {
    count: i64,
    keys: u64,
    checks: u64,
}

/// What is left of two multisets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decoded {
    /// Each key of the difference, and how many more of it one side had.
    pub found: Vec<(Key, i64)>,
    /// Parts whose keys are not named, or not all.
    pub undecoded: Vec<Part>,
}

impl Sketch {
    /// An empty one for the keys of this part.
    #[must_use]
    pub fn new(part: Part) -> Self {
        Self { part, cells: vec![Cell::default(); BUCKETS * CELLS] }
    }

    /// Adds a key so many times, or takes it away; keys of other parts are left out.
    pub fn add(&mut self, key: Key, times: i64) {
        if self.part.has(key) {
            let bucket = bucket_of(key, self.part.0.len());
            put(&mut self.cells[bucket * CELLS..(bucket + 1) * CELLS], key, times);
        }
    }

    /// Names what is left.
    #[must_use]
    pub fn decode(mut self) -> Decoded {
        let mut decoded = Decoded::default();
        for (bucket, cells) in self.cells.chunks_exact_mut(CELLS).enumerate() {
            let before = decoded.found.len();
            peel(cells, &mut decoded.found);
            if cells.iter().any(|cell| *cell != Cell::default()) {
                decoded.found.truncate(before);
                let mut part = self.part.clone();
                part.0.push(bucket);
                decoded.undecoded.push(part);
            }
        }
        decoded
    }
}

fn put(cells: &mut [Cell], key: Key, times: i64) {
    let factor = u64::try_from(times.rem_euclid(PRIME as i64)).unwrap_or(0);
    let (sum, check) = match times {
        1 => (key.0, check_of(key)),
        _ => (multiply(key.0, factor), multiply(check_of(key), factor)),
    };
    for place in places(key) {
        let cell = &mut cells[place];
        cell.count = cell.count.wrapping_add(times);
        cell.keys = add(cell.keys, sum);
        cell.checks = add(cell.checks, check);
    }
}

/// Takes out what cells name until none names anything.
fn peel(cells: &mut [Cell], found: &mut Vec<(Key, i64)>) {
    let mut next: Vec<usize> = (0..cells.len()).collect();
    while let Some(at) = next.pop() {
        let Some(key) = only_key(cells[at], at) else { continue };
        let count = cells[at].count;
        put(cells, key, -count);
        found.push((key, count));
        next.extend(places(key));
    }
}

/// The key that a cell has alone, however often.
fn only_key(cell: Cell, at: usize) -> Option<Key> {
    let count = u64::try_from(cell.count.rem_euclid(PRIME as i64)).ok().filter(|count| *count != 0)?;
    let key = Key(match cell.count {
        1 => cell.keys,
        _ => multiply(cell.keys, inverse(count)),
    });
    (multiply(check_of(key), count) == cell.checks && places(key).contains(&at)).then_some(key)
}

fn places(key: Key) -> [usize; COPIES] {
    let third = CELLS / COPIES;
    let mut place = 0;
    [0x51, 0x52, 0x53].map(|salt| {
        place += 1;
        (place - 1) * third + reduced(mixed(key.0, salt), third)
    })
}

fn bucket_of(key: Key, depth: usize) -> usize {
    reduced(mixed(key.0, 0xb0 + depth as u64), BUCKETS)
}

/// Evenly below `below`.
fn reduced(hash: u64, below: usize) -> usize {
    ((u128::from(hash) * below as u128) >> 64) as usize
}

fn check_of(key: Key) -> u64 {
    mixed(key.0, 0xc4) % PRIME
}

/// The finalizer of splitmix64, by Sebastiano Vigna.
const fn mixed(key: u64, salt: u64) -> u64 {
    let mut z = key.wrapping_add(salt.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

const fn add(one: u64, other: u64) -> u64 {
    let sum = one + other;
    if sum >= PRIME { sum - PRIME } else { sum }
}

fn multiply(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    add(product as u64 & PRIME, (product >> 61) as u64)
}

/// By Fermat's little theorem.
fn inverse(of: u64) -> u64 {
    let (mut power, mut exponent, mut result) = (of, PRIME - 2, 1);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = multiply(result, power);
        }
        power = multiply(power, power);
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn key(n: u64) -> Key {
        Key::of(mixed(n, 7))
    }

    /// What a second reading does of each part that the first could not decode.
    fn all(table: &[u64], topic: &[u64]) -> (BTreeMap<Key, i64>, usize) {
        let (mut parts, mut found, mut passes) = (vec![Part::default()], BTreeMap::new(), 0);
        while let Some(part) = parts.pop() {
            passes += 1;
            let mut sketch = Sketch::new(part);
            table.iter().for_each(|n| sketch.add(key(*n), 1));
            topic.iter().for_each(|n| sketch.add(key(*n), -1));
            let decoded = sketch.decode();
            for (key, count) in decoded.found {
                assert_eq!(found.insert(key, count), None, "named twice");
            }
            parts.extend(decoded.undecoded);
        }
        (found, passes)
    }

    fn expected(table: &[u64], topic: &[u64]) -> BTreeMap<Key, i64> {
        let mut counts = BTreeMap::new();
        table.iter().for_each(|n| *counts.entry(key(*n)).or_default() += 1);
        topic.iter().for_each(|n| *counts.entry(key(*n)).or_default() -= 1);
        counts.retain(|_, count| *count != 0);
        counts
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        // Guarantee: verify.sketch
        #[test]
        fn up_to_a_thousand_differences_among_many_ids_are_named_exactly(
            size in prop_oneof![0_u64..100, 0_u64..10_000, 90_000_u64..100_000],
            lost in prop::collection::btree_set(0_u64..100_000, 0..500),
            more in prop::collection::btree_set(1_000_000_u64..2_000_000, 0..250),
            twice in prop::collection::btree_map(0_u64..100_000, 1_usize..5, 0..250),
            seed in any::<u64>(),
        ) {
            let table: Vec<u64> = (0..size).collect();
            let mut topic: Vec<u64> = table.iter().copied().filter(|n| !lost.contains(n)).chain(more).collect();
            for (n, times) in &twice {
                topic.extend(std::iter::repeat_n(*n, *times).filter(|n| *n < size));
            }
            fastrand::Rng::with_seed(seed).shuffle(&mut topic);
            let (found, passes) = all(&table, &topic);
            prop_assert_eq!(found, expected(&table, &topic));
            prop_assert_eq!(passes, 1);
        }
    }

    // Guarantee: verify.sketch
    #[test]
    fn a_million_equal_ids_leave_nothing_and_one_lost_id_is_named() {
        let table: Vec<u64> = (0..1_000_000).collect();
        let mut sketch = Sketch::new(Part::default());
        table.iter().for_each(|n| sketch.add(key(*n), 1));
        table.iter().rev().for_each(|n| sketch.add(key(*n), -1));
        assert_eq!(sketch.clone().decode(), Decoded::default());
        sketch.add(key(77), 1);
        assert_eq!(sketch.decode().found, [(key(77), 1)]);
    }

    #[test]
    fn more_than_a_sketch_holds_is_found_part_by_part() {
        let table: Vec<u64> = (0..400_000).collect();
        let mut first = Sketch::new(Part::default());
        table.iter().for_each(|n| first.add(key(*n), 1));
        let decoded = first.decode();
        assert_eq!((decoded.found.len(), decoded.undecoded.len()), (0, BUCKETS), "nothing is guessed");
        let mut parts = decoded.undecoded.into_iter();
        let part = parts.next().expect("a part");
        let mut second = Sketch::new(part.clone());
        table.iter().for_each(|n| second.add(key(*n), 1));
        let mut found: Vec<Key> = second.decode().found.into_iter().map(|(key, _)| key).collect();
        let mut wanted: Vec<Key> = table.iter().map(|n| key(*n)).filter(|key| part.has(*key)).collect();
        found.sort_unstable();
        wanted.sort_unstable();
        assert!(found == wanted && found.len() > 400_000 / BUCKETS / 2);
    }

    #[test]
    fn every_multiplicity_is_divided_out() {
        for count in [1, -1, 2, -2, 3, -7, 1_000_000, -1_000_000] {
            let mut sketch = Sketch::new(Part::default());
            sketch.add(key(5), count);
            assert_eq!(sketch.decode().found, [(key(5), count)]);
        }
        assert_eq!(multiply(inverse(12_345), 12_345), 1);
    }
}
