//! How large a run is.

use anyhow::bail;

use super::payload::Payload;

/// See the module.
#[derive(Clone, Debug)]
pub struct Options {
    /// How often each figure is measured.
    pub rounds: usize,
    /// How many rows the slow program relays.
    pub sequential: u64,
    /// How long the latency is watched, and the idle relay.
    pub seconds: u64,
    /// How many rows of due work are claimed.
    pub due: u64,
    /// How many rows go into read models.
    pub models: u64,
    /// How many calls of the ledger are made in each way.
    pub calls: u64,
    /// How many next occurrences are computed.
    pub computations: u64,
    /// How many schedules there are.
    pub schedules: u64,
    /// How long they are watched.
    pub schedule_seconds: u64,
    text: u64,
    row: u64,
    only: Vec<String>,
}

impl Options {
    /// `--quick`, `--rounds N`, `--text N`, `--row N`, `--due N`, `--models N`, `--calls N`, `--schedules N`, `--seconds N`, and names of parts to be
    /// measured alone.
    pub fn from_args(args: impl IntoIterator<Item = String>) -> anyhow::Result<Self> {
        let mut options = Self {
            rounds: 5,
            sequential: 2_000,
            seconds: 10,
            due: 50_000,
            models: 100_000,
            calls: 20_000,
            computations: 300_000,
            schedules: 100_000,
            schedule_seconds: 180,
            text: 1_000_000,
            row: 500_000,
            only: Vec::new(),
        };
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            let mut number = || -> anyhow::Result<u64> { Ok(args.next().unwrap_or_default().parse()?) };
            match arg.as_str() {
                "--bench" => {} // cargo's own word
                "--quick" => {
                    options = Self {
                        rounds: 2,
                        sequential: 500,
                        seconds: 3,
                        due: 5_000,
                        models: 20_000,
                        calls: 2_000,
                        computations: 60_000,
                        schedules: 100_000,
                        schedule_seconds: 30,
                        text: 200_000,
                        row: 100_000,
                        only: options.only,
                    };
                }
                "--rounds" => options.rounds = usize::try_from(number()?)?.max(1),
                "--text" => options.text = number()?,
                "--row" => options.row = number()?,
                "--seconds" => options.seconds = number()?.max(1),
                "--due" => options.due = number()?.max(1),
                "--models" => options.models = number()?.max(1),
                "--schedules" => options.schedules = number()?.max(1_000),
                "--calls" => options.calls = number()?.max(100),
                "rates" | "latency" | "takeover" | "idle" | "pending" | "sql" | "intake" | "rules" | "schedules" => {
                    options.only.push(arg);
                }
                _ => bail!(
                    "unknown argument {arg}; known: --quick, --rounds N, --text N, --row N, --due N, --models N, --calls N, \
                     --schedules N, --seconds N, rates, latency, takeover, idle, pending, sql, intake, rules, schedules"
                ),
            }
        }
        Ok(options)
    }

    /// Whether this part is to be measured.
    pub fn wants(&self, part: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == part)
    }

    /// How many rows of this payload are read, produced and relayed.
    pub fn rows(&self, payload: Payload) -> u64 {
        match payload {
            Payload::Text => self.text,
            Payload::Row => self.row,
        }
    }

    /// Tells a watching person where it stands; standard output is the report's.
    pub fn say(&self, what: &str) {
        eprintln!("bench: {what}");
    }
}
