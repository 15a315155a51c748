//! What a storm is made of, drawn from one seed.
//!
//! The same seed gives the same draw. What happens when is the machine's: a replay is another run of the same storm.

use std::fmt;
use std::time::Duration;

use anyhow::{Context as _, bail};
use fastrand::Rng;
use serde::Serialize;

pub use super::kinds::{CreatedAt, Ddl, Fault, Kind, Move, Sink};

/// What a storm is made of.
#[derive(Clone, Debug, Serialize)]
pub struct Draw {
    /// What everything else follows from.
    pub seed: u64,
    /// The table.
    pub table: Kind,
    /// See [`CreatedAt`].
    pub created_at: CreatedAt,
    /// Whether the relay's role has `pg_read_all_stats`.
    pub stats: bool,
    /// See [`Sink`].
    pub sink: Sink,
    /// `at_most_once`; otherwise `at_least_once`.
    pub at_most_once: bool,
    /// How many cursors share the rows.
    pub shards: u32,
    /// How many processes relay.
    pub replicas: usize,
    /// `deadline` of `[relay.turn]`, in seconds: the lock of a stopped holder ends after 12/5 of it.
    pub deadline: u64,
    /// `rows` of `[relay.turn]`; none is the default.
    pub turn_rows: Option<u32>,
    /// `latency_window` in milliseconds; none is the default.
    pub window: Option<u32>,
    /// `min` of `[relay.poll]` in milliseconds; none is the default. The longer, the more rows a turn has.
    pub poll: Option<u32>,
    /// Rows that are there before the relay, in each table that rows are inserted into.
    pub preloaded: u32,
    /// Locks that a session holds on other things: the more, the longer a look at all locks takes.
    pub locks: u32,
    /// How many write.
    pub writers: usize,
    /// Rows a second of all of them.
    pub rate: f64,
    /// How long they write, in seconds.
    pub seconds: u64,
    /// The longest pause inside a transaction, in milliseconds.
    pub pause: u64,
    /// See [`Move`].
    pub moves: Vec<Move>,
    /// See [`Ddl`].
    pub ddl: Vec<Ddl>,
    /// See [`Fault`].
    pub faults: Vec<Fault>,
}

impl Draw {
    /// The draw of a seed, with `pins` instead of what was drawn.
    pub fn new(seed: u64, pins: &[(String, String)]) -> anyhow::Result<Self> {
        let random = &mut Rng::with_seed(seed);
        let table = weighted(random, &[(Kind::Plain, 3), (Kind::Hash, 3), (Kind::Range, 2), (Kind::Inheritance, 2)]);
        let (clock, now) =
            ([(CreatedAt::Clock, 2), (CreatedAt::Stamp, 2), (CreatedAt::Always, 2)], (CreatedAt::Now, 3));
        let created_at = weighted(random, &[clock[0], clock[1], clock[2], now, (CreatedAt::Sent, 1)]);
        let sink = weighted(random, &[(Sink::Kafka, 14), (Sink::Sms, 1), (Sink::Http, 2), (Sink::Stdout, 2)]);
        let (one_by_one, kafka) = (matches!(sink, Sink::Sms | Sink::Http), sink == Sink::Kafka);
        let mut draw = Self {
            seed,
            table,
            created_at,
            stats: random.u8(0..3) > 0,
            sink,
            at_most_once: random.u8(0..5) == 0 && sink != Sink::Stdout,
            shards: if random.u8(0..5) == 0 && kafka { 3 } else { 1 },
            replicas: random.usize(2..=3),
            deadline: weighted(random, &[(1, 1), (2, 2), (5, 1)]),
            turn_rows: (random.u8(0..3) == 0).then(|| random.u32(20..400)),
            window: None,
            poll: (random.u8(0..3) == 0).then(|| random.u32(5..60)),
            preloaded: if one_by_one { 0 } else { weighted(random, &[(0, 1), (5_000, 2), (20_000, 1)]) },
            locks: weighted(random, &[(0, 2), (3_000, 1), (10_000, 1)]),
            writers: random.usize(4..=12),
            rate: if one_by_one { random.u32(20..60) } else { random.u32(200..1_500) }.into(),
            seconds: random.u64(25..=45),
            pause: weighted(random, &[(50, 1), (400, 2), (2_500, 1)]),
            moves: Vec::new(),
            ddl: Vec::new(),
            faults: Vec::new(),
        };
        let optional = [Move::Copy, Move::Prepared, Move::Message, Move::Update, Move::Child];
        draw.moves = [Move::Single, Move::Block].into();
        draw.moves.extend(optional.into_iter().filter(|_| random.bool()));
        let mut ddl: Vec<Ddl> = Ddl::ALL.iter().copied().filter(|ddl| draw.allows_ddl(*ddl)).collect();
        random.shuffle(&mut ddl);
        draw.ddl = ddl.into_iter().take(weighted(random, &[(0, 1), (1, 3), (2, 2)])).collect();
        let mut faults = Fault::ALL.to_vec();
        random.shuffle(&mut faults);
        draw.faults = faults.into_iter().take(weighted(random, &[(0, 1), (1, 2), (2, 3), (3, 2)])).collect();
        for (key, value) in pins {
            draw.pin(key, value).with_context(|| format!("--pin {key}={value}"))?;
        }
        draw.leave_out_what_loses_by_design();
        Ok(draw)
    }

    /// Whether the table can have this done to it, and the guarantee bears what follows.
    fn allows_ddl(&self, ddl: Ddl) -> bool {
        let family = self.table != Kind::Plain;
        let partitioned = matches!(self.table, Kind::Hash | Kind::Range);
        match ddl {
            Ddl::Rewrite | Ddl::VacuumFull | Ddl::Cluster | Ddl::AccessMethod | Ddl::Repack => true,
            // The stamp trigger would stamp the rows that are filled in.
            Ddl::Swap => self.created_at != CreatedAt::Always,
            Ddl::Reattach => family,
            // What is passed meanwhile halts the relay; the cure, to move the position back, sends rows twice.
            Ddl::Detach => family && !self.at_most_once,
            Ddl::DetachConcurrently => partitioned && !self.at_most_once,
        }
    }

    /// docs/SOAK.md says why, for each.
    fn leave_out_what_loses_by_design(&mut self) {
        if self.table != Kind::Inheritance {
            self.moves.retain(|one| *one != Move::Child);
        }
        if self.created_at == CreatedAt::Now && !self.stats {
            self.moves.retain(|one| !matches!(one, Move::Message | Move::Prepared));
            self.window = Some(1_000);
        }
        let kept = self.ddl.iter().copied().filter(|ddl| self.allows_ddl(*ddl)).collect();
        self.ddl = kept;
        if self.sink == Sink::Stdout {
            self.faults.retain(|fault| !matches!(fault, Fault::Receiver | Fault::Hang));
        }
    }

    fn pin(&mut self, key: &str, value: &str) -> anyhow::Result<()> {
        match key {
            "table" => self.table = Kind::parse(value)?,
            "created_at" => self.created_at = CreatedAt::parse(value)?,
            "stats" => self.stats = value.parse()?,
            "sink" => self.sink = Sink::parse(value)?,
            "guarantee" => self.at_most_once = value == "at_most_once",
            "shards" => self.shards = value.parse()?,
            "replicas" => self.replicas = value.parse()?,
            "rate" => self.rate = value.parse()?,
            "seconds" => self.seconds = value.parse()?,
            "pause" => self.pause = value.parse()?,
            "locks" => self.locks = value.parse()?,
            "preloaded" => self.preloaded = value.parse()?,
            "writers" => self.moves = list(value, Move::parse)?,
            "ddl" => self.ddl = list(value, Ddl::parse)?,
            "faults" => self.faults = list(value, Fault::parse)?,
            _ => bail!("there is no such key"),
        }
        Ok(())
    }

    /// The relay's role.
    pub fn role(&self) -> &'static str {
        if self.stats { "relay_stats" } else { "relay" }
    }

    /// How long they write.
    pub fn writing(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}

/// Words with commas between them; `none` is an empty list.
pub fn list<T>(words: &str, parse: impl Fn(&str) -> anyhow::Result<T>) -> anyhow::Result<Vec<T>> {
    if words == "none" { Ok(Vec::new()) } else { words.split(',').map(parse).collect() }
}

fn weighted<T: Copy>(random: &mut Rng, choices: &[(T, u32)]) -> T {
    let mut at = random.u32(0..choices.iter().map(|(_, weight)| weight).sum());
    for (choice, weight) in choices {
        match at.checked_sub(*weight) {
            Some(rest) => at = rest,
            None => return *choice,
        }
    }
    unreachable!("the weights add up")
}

impl fmt::Display for Draw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |words: Vec<&str>| if words.is_empty() { "-".to_owned() } else { words.join(",") };
        let stats = if self.stats { "+stats" } else { "" };
        write!(f, "{}/{}{stats}", self.table.word(), self.created_at.word())?;
        let guarantee = if self.at_most_once { "/at_most_once" } else { "" };
        write!(f, " {}{guarantee}", self.sink.word())?;
        if self.shards > 1 {
            write!(f, "/{} shards", self.shards)?;
        }
        write!(f, " x{}", self.replicas)?;
        write!(f, " writers={}", list(self.moves.iter().map(|one| one.word()).collect()))?;
        write!(f, " ddl={}", list(self.ddl.iter().map(|one| one.word()).collect()))?;
        write!(f, " faults={}", list(self.faults.iter().map(|one| one.word()).collect()))
    }
}
