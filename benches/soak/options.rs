//! How long it goes on, from which seed, and against which program.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail};

const HELP: &str = "\
make soak [HOURS=8] [SEED=n] [STORMS=n] [RELAY=PATH] [ARGS=\"--pin KEY=VALUE …\"]

Runs storms one after the other, each drawn from a seed of its own, and prints a line for each. docs/SOAK.md explains them.

  --hours H        begin no further storm after this long (default 8; fractions are allowed)
  --seed N         seed of the first storm; each further one has the next number (default: drawn, and printed)
  --storms N       end after this many
  --relay PATH     the program to test (default: target/release/outbox-relay)
  --pin KEY=VALUE  replace a part of every draw; keys: table, created_at, stats, sink, guarantee, shards, replicas, rate,
                   seconds, pause, preloaded, locks, writers, ddl, faults; lists with commas, none for an empty one

The exit code is 0 when every storm passed, 1 when one failed, 3 when none failed and one is undecided.
";

/// See the module.
#[derive(Clone, Debug)]
pub struct Options {
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
}

impl Options {
    /// From the command line; none when help was asked for.
    pub fn from_args(mut args: impl Iterator<Item = String>) -> anyhow::Result<Option<Self>> {
        let mut options = Self {
            duration: Duration::from_secs(8 * 3_600),
            seed: u64::from(fastrand::u32(..)),
            storms: u64::MAX,
            relay: PathBuf::from("target/release/outbox-relay"),
            pins: Vec::new(),
        };
        while let Some(arg) = args.next() {
            let mut value = || args.next().with_context(|| format!("{arg} needs a value\n\n{HELP}"));
            match arg.as_str() {
                "--bench" => {} // cargo's own word
                "--help" | "-h" => {
                    print!("{HELP}");
                    return Ok(None);
                }
                "--hours" => options.duration = Duration::try_from_secs_f64(value()?.parse::<f64>()? * 3_600.0)?,
                "--seed" => options.seed = value()?.parse()?,
                "--storms" => options.storms = value()?.parse()?,
                "--relay" => options.relay = value()?.into(),
                "--pin" => {
                    let pin = value()?;
                    let (key, value) = pin.split_once('=').with_context(|| format!("--pin {pin}: write KEY=VALUE"))?;
                    options.pins.push((key.to_owned(), value.to_owned()));
                }
                _ => bail!("unknown argument {arg}\n\n{HELP}"),
            }
        }
        let relay = options.relay.display().to_string();
        options.relay = std::fs::canonicalize(&options.relay)
            .with_context(|| format!("{relay} is not there: run `cargo build --release --bin outbox-relay`"))?;
        Ok(Some(options))
    }
}
