//! What is run, how long it goes on, from which seed, and against which program.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail};

use super::draw::list;
use super::kinds::Plant;

const HELP: &str = "\
make soak [HOURS=8] [SEED=n] [STORMS=n] [RELAY=PATH] [ARGS=\"--pin KEY=VALUE …\"]
make test-planted [COUNT=100] [KILLS=200] [SEED=n] [RELAY=PATH]
make test-promotions [PROMOTIONS=200] [SEED=n] [RELAY=PATH]

Without a part it runs storms one after the other, each drawn from a seed of its own, and prints a line for each. docs/SOAK.md explains
all three.

  planted          lose rows on purpose, under load: does `verify` or the audit name each of them, and nothing else?
  promotions       kill the primary and promote its standby, under load: what was published that is not in the table any more?

  --hours H        begin no further storm after this long (default 8; fractions are allowed)
  --seed N         seed of the first storm; each further one has the next number (default: drawn, and printed)
  --storms N       end after this many
  --relay PATH     the program to test (default: target/release/outbox-relay)
  --pin KEY=VALUE  replace a part of every draw; keys: table, created_at, stats, sink, guarantee, shards, replicas, rate,
                   seconds, pause, preloaded, locks, writers, ddl, faults; lists with commas, none for an empty one

  --count N        planted: how many losses (default 100; 0 for none)
  --kinds A,B      planted: only losses of these kinds
  --kills N        planted: how often a replica is killed, ended or stopped, or its sessions are ended, meanwhile (default 0)
  --promotions N   promotions: how many (default 200)

The exit code is 0 when all is well, 1 when a storm failed, a loss was not found, something was named that was not lost, or a row was
published that a promotion undid; 3 when no storm failed and one is undecided.
";

/// What is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Storms, one after the other.
    Storms,
    /// Losses on purpose.
    Planted,
    /// Promotions of standbys.
    Promotions,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is run.
    pub part: Part,
    /// No storm begins later than this after the start.
    pub duration: Duration,
    /// Seed of the first storm.
    pub seed: u64,
    /// How many storms at most.
    pub storms: u64,
    /// The program to test.
    pub relay: PathBuf,
    /// Parts of the draw that are given: key and value.
    pub pins: Vec<(String, String)>,
    /// How many losses are planted.
    pub count: usize,
    /// Of which kinds.
    pub kinds: Vec<Plant>,
    /// How often a replica is killed meanwhile.
    pub kills: usize,
    /// How many standbys are promoted.
    pub promotions: usize,
}

impl Options {
    /// From the command line; none when help was asked for.
    pub fn from_args(mut args: impl Iterator<Item = String>) -> anyhow::Result<Option<Self>> {
        let mut options = Self::default();
        while let Some(arg) = args.next() {
            let mut value = || args.next().with_context(|| format!("{arg} needs a value\n\n{HELP}"));
            match arg.as_str() {
                "--bench" => {} // cargo's own word
                "--help" | "-h" => {
                    print!("{HELP}");
                    return Ok(None);
                }
                "planted" => options.part = Part::Planted,
                "promotions" => options.part = Part::Promotions,
                "--hours" => options.duration = Duration::try_from_secs_f64(value()?.parse::<f64>()? * 3_600.0)?,
                "--seed" => options.seed = value()?.parse()?,
                "--storms" => options.storms = value()?.parse()?,
                "--relay" => options.relay = value()?.into(),
                "--count" => options.count = value()?.parse()?,
                "--kinds" => options.kinds = list(&value()?, Plant::parse)?,
                "--kills" => options.kills = value()?.parse()?,
                "--promotions" => options.promotions = value()?.parse::<usize>()?.max(1),
                "--pin" => {
                    let pin = value()?;
                    let (key, value) = pin.split_once('=').with_context(|| format!("--pin {pin}: write KEY=VALUE"))?;
                    options.pins.push((key.to_owned(), value.to_owned()));
                }
                _ => bail!("unknown argument {arg}\n\n{HELP}"),
            }
        }
        if options.kinds.is_empty() {
            bail!("--kinds none: name one at least, or write --count 0\n\n{HELP}");
        }
        let relay = options.relay.display().to_string();
        options.relay = std::fs::canonicalize(&options.relay)
            .with_context(|| format!("{relay} is not there: run `cargo build --release --bin outbox-relay`"))?;
        Ok(Some(options))
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            part: Part::Storms,
            duration: Duration::from_secs(8 * 3_600),
            seed: u64::from(fastrand::u32(..)),
            storms: u64::MAX,
            relay: PathBuf::from("target/release/outbox-relay"),
            pins: Vec::new(),
            count: 100,
            kinds: Plant::ALL.to_vec(),
            kills: 0,
            promotions: 200,
        }
    }
}
