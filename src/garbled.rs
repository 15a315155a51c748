//! Garbled input for everything that reads what others write: kept examples of `tests/corpus`, and changes of them drawn from a seed.
//!
//! A test loops over the inputs; when it panics, the input is kept in `target/garbled` and its file is named: move it to the corpus
//! with the cure. `make fuzz` gives minutes, and another seed each time.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The most changes of one example.
const CHANGES: usize = 8;
/// Larger inputs are cut: most of what is found is found in small ones.
const LARGEST: usize = 64 << 10;
/// An input that takes longer is kept to be looked at: a debug build on a busy machine is slow, so that it is no failure.
const SLOW: Duration = Duration::from_secs(5);
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
    last: Vec<u8>,
    since: Instant,
    given: usize,
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
            last: Vec::new(),
            since: Instant::now(),
            given: 0,
        }
    }

    /// With one more example.
    pub(crate) fn with(mut self, example: &[u8]) -> Self {
        self.examples.push(example.to_vec());
        self
    }

    /// Where the last input is now.
    fn keep(&self, why: &str) -> String {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/garbled");
        let path = dir.join(format!("{}-{why}-{}-{}", self.target, self.seed, self.given));
        match std::fs::create_dir_all(&dir).and_then(|()| std::fs::write(&path, &self.last)) {
            Ok(()) => path.display().to_string(),
            Err(error) => format!("not kept: {error}"),
        }
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
        if self.given > 0 && self.since.elapsed() > SLOW {
            eprintln!("it took {:?}: {}", self.since.elapsed(), self.keep("slow"));
        }
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
        self.last.clone_from(&bytes);
        self.since = Instant::now();
        Some(bytes)
    }
}

impl Drop for Garbled {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("input {} of seed {}: {}", self.given, self.seed, self.keep("panic"));
        } else {
            println!("{}: {} inputs, seed {}", self.target, self.given, self.seed);
        }
    }
}
