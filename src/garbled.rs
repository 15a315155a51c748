//! Garbled input for everything that reads what others write: kept examples of `tests/corpus`, and changes of them drawn from a seed.
//!
//! A test loops over the inputs. If it panics, or takes too much CPU time or memory for one of them, it fails, and the input is kept
//! in `target/garbled` and its file is named: move it to the corpus with the fix. `make fuzz` gives minutes, and another seed each time.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use limits::{Input, Limits, Watch};

mod limits;
#[cfg(test)]
mod tests;

/// The most changes of one example.
const CHANGES: usize = 8;
/// Larger inputs are cut: most of what is found is found in small ones.
const LARGEST: usize = 64 << 10;
/// What parsers stumble over.
const PIECES: [&str; 24] = [
    "\0",
    "\r\n",
    "\n.\r\n",
    "\u{feff}",
    "\u{202e}",
    "\u{1f600}",
    "\\u0000",
    "\\ud800",
    "%00",
    "%2e%2e/",
    "-1",
    "0",
    "1e309",
    "9223372036854775808",
    "18446744073709551616",
    "NaN",
    "null",
    "\"",
    "'",
    "[[[[[[[[",
    "{{{{",
    "}}",
    "{%",
    "=",
];

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{variable}={text}: no number")))
}

/// Inputs for one reader, until its time is over: first the examples as they are.
pub(crate) struct Garbled {
    target: &'static str,
    examples: Vec<Vec<u8>>,
    draw: fastrand::Rng,
    seed: u64,
    end: Instant,
    given: usize,
    limits: Limits,
    /// From the first input on.
    watch: Option<Watch>,
}

impl Garbled {
    /// Those of `tests/corpus/TARGET`, for `OUTBOX_RELAY_FUZZ_SECONDS` or two seconds, drawn from `OUTBOX_RELAY_FUZZ_SEED`.
    pub(crate) fn new(target: &'static str) -> Self {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(target);
        let entries = std::fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
        paths.sort();
        let examples: Vec<_> = paths.iter().map(|path| std::fs::read(path).expect("readable")).collect();
        assert!(!examples.is_empty(), "{}: no example", dir.display());
        let seed = number("OUTBOX_RELAY_FUZZ_SEED").unwrap_or(20);
        let lasts = Duration::from_secs(number("OUTBOX_RELAY_FUZZ_SECONDS").unwrap_or(2));
        let end = Instant::now() + lasts;
        Self {
            target,
            examples,
            draw: fastrand::Rng::with_seed(seed),
            seed,
            end,
            given: 0,
            limits: Limits::default(),
            watch: None,
        }
    }

    /// With one more example.
    pub(crate) fn with(mut self, example: &[u8]) -> Self {
        self.examples.push(example.to_vec());
        self
    }

    /// With other limits of each input.
    #[cfg(test)]
    fn within(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    fn example(&mut self) -> &[u8] {
        let at = self.draw.usize(..self.examples.len());
        &self.examples[at]
    }

    /// A piece of another example, or a known stumbling block.
    fn piece(&mut self) -> Vec<u8> {
        if self.draw.bool() {
            return PIECES[self.draw.usize(..PIECES.len())].repeat(self.draw.usize(1..4)).into_bytes();
        }
        let from = self.draw.u64(..);
        let example = self.example();
        let (start, length) = (from as usize % (example.len() + 1), (from >> 32) as usize % 64);
        example[start..].iter().take(length).copied().collect()
    }

    fn change(&mut self, bytes: &mut Vec<u8>) {
        let at = self.draw.usize(..=bytes.len());
        let end = (at + self.draw.usize(..32)).min(bytes.len());
        match self.draw.u8(..6) {
            0 if at < bytes.len() => bytes[at] ^= 1 << self.draw.u8(..8),
            1 if at < bytes.len() => bytes[at] = self.draw.u8(..),
            2 => drop(bytes.drain(at..end)),
            3 => {
                let repeated = bytes[at..end].repeat(self.draw.usize(1..20));
                bytes.splice(at..at, repeated);
            }
            4 if self.draw.u8(..4) == 0 => bytes.truncate(at),
            _ => {
                let piece = self.piece();
                bytes.splice(at..at, piece);
            }
        }
    }
}

impl Iterator for Garbled {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let mut bytes = match self.examples.get(self.given) {
            Some(example) => example.clone(),
            None if Instant::now() >= self.end => return None,
            None => {
                let mut bytes = self.example().to_vec();
                for _ in 0..self.draw.usize(1..=CHANGES) {
                    self.change(&mut bytes);
                }
                bytes
            }
        };
        bytes.truncate(LARGEST);
        self.given += 1;
        let input = Input { target: self.target, seed: self.seed, number: self.given, bytes: bytes.clone() };
        self.watch.get_or_insert_with(|| Watch::begin(self.limits)).see(input);
        Some(bytes)
    }
}

impl Drop for Garbled {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let kept = self.watch.as_ref().map_or_else(|| "no input".to_owned(), |watch| watch.keep("panic"));
            eprintln!("input {} of seed {}: {kept}", self.given, self.seed);
        } else {
            println!("{}: {} inputs, seed {}", self.target, self.given, self.seed);
        }
    }
}
