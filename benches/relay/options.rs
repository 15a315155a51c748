//! How large a run is.

use std::time::Instant;

use anyhow::bail;

use super::payload::Payload;

/// What is measured unless parts are named, in this order; minutes that each takes on two cores, about.
pub const PARTS: [(&str, f64); 10] = [
    ("rates", 3.5),
    ("delay", 0.5),
    ("latency", 2.8),
    ("primary_load", 1.4),
    ("takeover", 0.3),
    ("idle", 0.6),
    ("many_cursors", 2.0),
    ("backlog", 1.1),
    ("dead_versions", 1.3),
    ("shards", 0.5),
];
/// What is measured only by its name.
pub const NAMED: [&str; 13] = [
    "compare",
    "pending",
    "sql",
    "intake",
    "rules",
    "schedules",
    "lanes",
    "parked",
    "audit",
    "formats",
    "page",
    "telemetry",
    "verify",
];

const HELP: &str = "\
make bench ARGS=\"[--quick|--full] [OPTION N]… [PART]…\"

Measures the relay beside the raw limits of this machine, prints a table and writes target/bench.json. A run of all parts
that succeeds, and is not --quick, also writes benches/results, which is committed; other runs draw into target/bench.

  --quick          small: does everything work?
  --full           more rounds and rows, a backlog of 10 million: about half an hour, 10 GB of disk
  --rounds N       how often each rate is measured
  --seconds N      how long latency and idle relays are watched
  --text N --row N --text-1600 N --text-16k N     rows of each payload
  --backlog N --dead N --cursors N --busy N       sizes of backlog, dead_versions and many_cursors
  --compare N --due N --models N --calls N --schedules N --verified N     sizes of parts that are measured by their names only

Parts: rates delay latency primary_load takeover idle many_cursors backlog dead_versions shards
Only by name: compare (make bench-compare), pending, sql, intake, rules, schedules, lanes, parked, audit,
formats, page, telemetry, verify (10 million rows unless --verified says otherwise: some 12 GB of disk)
draw: draw the plots again, from target/bench.json, into target/bench
";

/// See the module.
#[derive(Clone, Debug)]
pub struct Options {
    /// How often each rate is measured.
    pub rounds: usize,
    /// How often each latency is watched, and a drain with delay.
    pub watches: usize,
    /// How many holders are killed.
    pub kills: usize,
    /// How many rows the slow program relays.
    pub sequential: u64,
    /// How long latencies are watched, and idle relays.
    pub seconds: u64,
    /// How many cursors are many, and the rows that each of them gets.
    pub cursors: usize,
    /// See `cursors`.
    pub busy_rows: u64,
    /// How many rows wait for the relay.
    pub backlog: u64,
    /// How many dead versions the cursor's row has.
    pub dead_versions: u64,
    /// How many rows the relay and the slow program are compared with.
    pub compared: u64,
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
    /// How many rows `verify` compares with their topic.
    pub verified: u64,
    /// Rows of each of [`Payload::ALL`].
    rows: [u64; 4],
    quick: bool,
    only: Vec<String>,
    begun: Instant,
}

impl Options {
    /// See [`HELP`]; none when that was asked for.
    pub fn from_args(args: impl IntoIterator<Item = String>) -> anyhow::Result<Option<Self>> {
        let mut options = Self::usual();
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            let mut number = || -> anyhow::Result<u64> { Ok(args.next().unwrap_or_default().parse::<u64>()?.max(1)) };
            match arg.as_str() {
                "--bench" => {} // cargo's own word
                "--help" | "-h" => {
                    print!("{HELP}");
                    return Ok(None);
                }
                "--quick" => options = Self { only: options.only, ..Self::quick() },
                "--full" => options = Self { only: options.only, ..Self::full() },
                "--rounds" => options.rounds = usize::try_from(number()?)?,
                "--seconds" => options.seconds = number()?,
                "--text" => options.rows[0] = number()?,
                "--row" => options.rows[1] = number()?,
                "--text-1600" => options.rows[2] = number()?,
                "--text-16k" => options.rows[3] = number()?,
                "--backlog" => options.backlog = number()?,
                "--dead" => options.dead_versions = number()?,
                "--cursors" => options.cursors = usize::try_from(number()?)?.next_multiple_of(20),
                "--busy" => options.busy_rows = number()?,
                "--compare" => options.compared = number()?,
                "--due" => options.due = number()?,
                "--models" => options.models = number()?,
                "--schedules" => options.schedules = number()?.max(1_000),
                "--calls" => options.calls = number()?.max(100),
                "--verified" => options.verified = number()?,
                part if is_part(part) => options.only.push(arg),
                _ => bail!("unknown argument {arg}\n\n{HELP}"),
            }
        }
        Ok(Some(options))
    }

    fn usual() -> Self {
        Self {
            rounds: 3,
            watches: 2,
            kills: 5,
            sequential: 1_000,
            seconds: 8,
            cursors: 1_000,
            busy_rows: 600,
            backlog: 3_000_000,
            dead_versions: 100_000,
            compared: 20_000,
            due: 50_000,
            models: 100_000,
            calls: 20_000,
            computations: 300_000,
            schedules: 100_000,
            schedule_seconds: 180,
            verified: 10_000_000,
            rows: [1_500_000, 800_000, 250_000, 50_000],
            quick: false,
            only: Vec::new(),
            begun: Instant::now(),
        }
    }

    fn full() -> Self {
        Self {
            rounds: 5,
            watches: 3,
            kills: 10,
            seconds: 30,
            busy_rows: 2_000,
            backlog: 10_000_000,
            dead_versions: 500_000,
            rows: [3_000_000, 1_500_000, 500_000, 100_000],
            ..Self::usual()
        }
    }

    fn quick() -> Self {
        Self {
            rounds: 1,
            watches: 1,
            kills: 2,
            sequential: 200,
            seconds: 3,
            cursors: 100,
            busy_rows: 300,
            backlog: 400_000,
            dead_versions: 20_000,
            compared: 2_000,
            due: 5_000,
            models: 20_000,
            calls: 2_000,
            computations: 60_000,
            schedule_seconds: 30,
            verified: 300_000,
            rows: [200_000, 100_000, 30_000, 5_000],
            quick: true,
            ..Self::usual()
        }
    }

    /// The parts to be measured, in their order.
    pub fn parts(&self) -> Vec<&str> {
        if self.only.is_empty() {
            return PARTS.iter().map(|(part, _)| *part).collect();
        }
        let known = PARTS.iter().map(|(part, _)| *part).chain(NAMED);
        known.filter(|part| self.only.iter().any(|only| only == part)).collect()
    }

    /// Whether only the plots are wanted.
    pub fn draws_only(&self) -> bool {
        self.only.iter().any(|only| only == "draw")
    }

    /// Whether the run is worth to be kept when all of it succeeds.
    pub fn is_whole(&self) -> bool {
        self.only.is_empty() && !self.quick
    }

    /// How many rows of this payload are read, produced and relayed.
    pub fn rows(&self, payload: Payload) -> u64 {
        Payload::ALL.into_iter().zip(self.rows).find(|(known, _)| *known == payload).map_or(0, |(_, rows)| rows)
    }

    /// Tells a watching person where it stands; standard output is the report's.
    pub fn say(&self, what: &str) {
        let seconds = self.begun.elapsed().as_secs();
        eprintln!("bench {:>2}:{:02}  {what}", seconds / 60, seconds % 60);
    }
}

fn is_part(name: &str) -> bool {
    name == "draw" || PARTS.iter().any(|(part, _)| *part == name) || NAMED.contains(&name)
}
