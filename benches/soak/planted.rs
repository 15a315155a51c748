//! Losses on purpose, under load and while replicas are killed: does `verify`, or the audit of the running relays, name each of them
//! by its ids, and nothing that is not so?
//!
//! What is lost is known by whom it was done to; what has arrived, by a consumer of its own. In each round, some of them quiet, a loss
//! is planted and the table is compared with its topic. In the end all that has not arrived must be what `verify` names.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use chrono::{SecondsFormat, TimeDelta, Utc};
use fastrand::Rng;
use outbox_testkit::kafka::delete_topic;
use outbox_testkit::wait::until;

use super::draw::Draw;
use super::journal::Journal;
use super::kinds::Plant;
use super::options::Options;
use super::replicas::{CONFIG, Replicas, verb};
use super::stage::{Access, Stage};
use super::storm::settle_prepared;
use super::table;
use super::writers::Writers;
use findings::Findings;
use plants::Planter;
use tables::{HASTY, RELAYS, SHARDED};
use topics::Topics;

mod calm;
mod figures;
mod findings;
mod held;
mod kills;
mod plants;
mod tables;
mod topics;

/// What the storm is made of; the rest is drawn.
const PINS: [(&str, &str); 14] = [
    ("table", "plain"),
    ("created_at", "clock"),
    ("stats", "true"),
    ("sink", "kafka"),
    ("guarantee", "at_least_once"),
    ("shards", "1"),
    ("replicas", "3"),
    ("rate", "250"),
    ("pause", "300"),
    ("preloaded", "0"),
    ("locks", "0"),
    ("writers", "single,block,copy,prepared,message"),
    ("ddl", "none"),
    ("faults", "none"),
];
const PATIENCE: Duration = Duration::from_secs(120);
/// Rows are dated back by less than this, and among others.
const BEFORE: Duration = Duration::from_secs(4);
/// The longest pause between two rounds, in milliseconds: the load goes on.
const PAUSE: u64 = 1_200;
/// So often a loss is planted again that has lost nothing.
const ATTEMPTS: usize = 3;
/// Rounds without a loss, at least.
const QUIET: usize = 10;

/// What takes part.
#[derive(Debug)]
pub struct Scene {
    access: Access,
    dir: PathBuf,
    relay: PathBuf,
    draw: Draw,
    journal: Journal,
    /// A key of each shard.
    keys: [String; 2],
    /// Before every row, as `--since` has it.
    begun: String,
}

/// Plays it; what the program ends with.
pub async fn play(options: &Options) -> anyhow::Result<u8> {
    let pins = PINS.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let draw = Draw::new(options.seed, &[&pins[..], &options.pins[..]].concat())?;
    let stage = Stage::start().await.context("the stage")?;
    let (count, kills, relay) = (options.count, options.kills, options.relay.display());
    println!("seed {}, PostgreSQL {}, {relay}: {count} losses, {kills} kills", draw.seed, stage.access.major);
    let begun = Instant::now();
    let scene = Scene::build(&stage, options, draw).await?;
    let played = scene.play(options).await;
    std::fs::write(scene.dir.join("events.log"), scene.journal.text())?;
    let findings = played.with_context(|| format!("kept in {}", scene.dir.display()))?;
    let code = figures::tell(&scene, &findings, begun.elapsed())?;
    if code == 0 {
        std::fs::remove_dir_all(&scene.dir)?;
    } else {
        println!("kept in {}", scene.dir.display());
    }
    stage.stop().await?;
    Ok(code)
}

impl Scene {
    /// Makes database, tables, schema and configuration.
    async fn build(stage: &Stage, options: &Options, draw: Draw) -> anyhow::Result<Self> {
        let begun = (Utc::now() - TimeDelta::seconds(60)).to_rfc3339_opts(SecondsFormat::Micros, true);
        let dir = Path::new("target/soak").join(format!("planted-{}", draw.seed));
        if dir.exists() {
            std::fs::remove_dir_all(&dir)?;
        }
        std::fs::create_dir_all(&dir)?;
        let dir = std::fs::canonicalize(dir)?;
        let access = stage.database(&format!("planted_{}", draw.seed)).await?;
        let owner = access.owner().await?;
        owner.batch_execute(&table::make(&draw)).await.context("the table")?;
        owner.batch_execute(tables::MAKE).await.context("the tables beside it")?;
        let text = |role: &str| tables::config(&draw, &access.url(role), &access, &access.broker);
        std::fs::write(dir.join(CONFIG), text(draw.role()))?;
        let by_owner = dir.join("owner.toml");
        std::fs::write(&by_owner, text("postgres"))?;
        verb(&options.relay, &by_owner, &["migrate", "up", "--relay-role", draw.role(), "--indexes"]).await?;
        owner.batch_execute(tables::STAMP).await.context("the stamp trigger")?;
        let keys = tables::keys(&owner).await?;
        Ok(Self { access, dir, relay: options.relay.clone(), draw, journal: Journal::new(), keys, begun })
    }

    async fn play(&self, options: &Options) -> anyhow::Result<Findings> {
        let topics = Topics::start(&self.access).await?;
        let out = self.dir.join("out");
        let mut replicas = Replicas::start(self.draw.replicas, &self.relay, &self.dir, &out, &self.journal)?;
        let writers = Writers::start(&self.draw, &self.access, &self.journal);
        let trickles = [HASTY, SHARDED].map(|table| tables::trickle(&self.access, table));
        self.warm().await?;
        let mut findings = Findings::default();
        self.rounds(options, &topics, &mut replicas, &mut findings).await?;
        writers.stop().await?;
        drop(trickles);
        settle_prepared(&self.access, &self.journal).await?;
        replicas.heal().await?;
        tokio::select! {
            calm = self.calm(&topics, &mut findings) => calm?,
            ended = replicas.keep_running() => return Err(ended),
        }
        replicas.stop().await?;
        Ok(findings)
    }

    /// Waits until all cursors have passed rows, and record which.
    async fn warm(&self) -> anyhow::Result<()> {
        let owner = self.access.owner().await?;
        let ready = "SELECT count(*) = 4 AND bool_and(position_created_at IS NOT NULL AND audit IS NOT NULL) FROM outbox.cursor";
        until(PATIENCE, "all cursors have passed rows", async || Ok(owner.query_one(ready, &[]).await?.get(0))).await?;
        tokio::time::sleep(BEFORE).await;
        Ok(())
    }

    async fn rounds(
        &self,
        options: &Options,
        topics: &Topics,
        replicas: &mut Replicas,
        findings: &mut Findings,
    ) -> anyhow::Result<()> {
        let mut random = Rng::with_seed(self.draw.seed ^ 0x1055);
        let rounds = plan(options, &mut random);
        let mut planter = Planter::new(self, topics, random.fork());
        let owner = self.access.owner().await?;
        let share = |number: usize| options.kills * number / rounds.len();
        for (number, what) in rounds.iter().enumerate() {
            for _ in share(number)..share(number + 1) {
                kills::kill(&self.access, replicas, &self.journal, &mut random).await?;
            }
            replicas.revive().await?;
            tokio::time::sleep(Duration::from_millis(random.u64(100..PAUSE))).await;
            let begun = Instant::now();
            let word = what.map_or("nothing", Plant::word);
            match what {
                Some(kind) => {
                    self.lose(*kind, &mut planter, topics, findings).await.with_context(|| kind.word().to_owned())?;
                }
                None => {
                    for relay in RELAYS {
                        findings.compare(self, topics, relay, None, true).await?;
                    }
                }
            }
            findings.letters(&owner).await?;
            let alarms: usize = findings.alarms.iter().map(Vec::len).sum();
            let seconds = begun.elapsed().as_secs_f64();
            println!("{:4}/{} {word:<18} {seconds:5.1} s, {alarms} false alarms", number + 1, rounds.len());
        }
        Ok(())
    }

    /// Plants a loss, and compares at once.
    async fn lose(
        &self,
        kind: Plant,
        planter: &mut Planter<'_>,
        topics: &Topics,
        findings: &mut Findings,
    ) -> anyhow::Result<()> {
        let mut attempts = 1;
        let loss = loop {
            if let Some(loss) = planter.plant(kind).await? {
                break loss;
            }
            ensure!(attempts < ATTEMPTS, "its rows are delivered each time");
            attempts += 1;
        };
        self.journal.note(format!("{} of {}: {}", kind.word(), loss.relay, loss.ids.join(", ")));
        let (relay, copy) = (loss.relay, loss.copy.clone());
        findings.plant(loss);
        findings.compare(self, topics, relay, copy.as_ref(), false).await?;
        if let Some(copied) = copy {
            delete_topic(&self.access.broker, &copied.topic).await?;
        }
        Ok(())
    }
}

/// What is planted in each round; nothing in some.
fn plan(options: &Options, random: &mut Rng) -> Vec<Option<Plant>> {
    let mut losses = Vec::new();
    while losses.len() < options.count {
        let mut lap = options.kinds.clone();
        random.shuffle(&mut lap);
        losses.extend(lap);
    }
    losses.truncate(options.count);
    let quiet = QUIET.max(options.count / 4).max(options.kills / 10);
    let mut rounds: Vec<Option<Plant>> = losses.into_iter().map(Some).chain(std::iter::repeat_n(None, quiet)).collect();
    random.shuffle(&mut rounds);
    rounds
}
