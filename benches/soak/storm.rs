//! One storm, from its database to its verdict.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use outbox_testkit::bookings::{self, Written};
use outbox_testkit::kafka::delete_topic;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::ddl::Owner;
use super::draw::{Ddl, Draw, Sink};
use super::faults::Faults;
use super::journal::Journal;
use super::judge::{Findings, Verdict, judge, keep};
use super::operator::Operator;
use super::receiver::Receiver;
use super::replicas::{CONFIG, Replicas, config, verb};
use super::stage::{Access, Stage};
use super::table;
use super::writers::Writers;

/// How long the owner may take to put back what it has taken out.
const PUT_BACK: Duration = Duration::from_secs(120);

/// The configuration that leads to the servers directly, for verbs.
const DIRECT: &str = "direct.toml";

/// A storm that is over.
#[derive(Debug)]
pub struct Storm {
    /// What it was made of.
    pub draw: Draw,
    /// What came of it.
    pub findings: Findings,
    /// Faults and changes, each with how often.
    pub journal: Journal,
    /// How long all of it took.
    pub took: Duration,
    /// Rows that the writers committed in a second.
    pub rate: f64,
    /// Where it is kept; none when it passed.
    pub kept: Option<PathBuf>,
}

/// What takes part.
struct Scene {
    access: Access,
    dir: PathBuf,
    relay: PathBuf,
    journal: Journal,
}

/// Plays it.
pub async fn play(stage: &mut Stage, draw: Draw, relay: &Path) -> anyhow::Result<Storm> {
    let begun = Instant::now();
    let dir = Path::new("target/soak").join(draw.seed.to_string());
    if dir.exists() {
        std::fs::remove_dir_all(&dir)?;
    }
    std::fs::create_dir_all(&dir)?;
    let dir = std::fs::canonicalize(dir)?;
    let journal = Journal::new();
    let log = std::fs::metadata(stage.postgres.log()).map_or(0, |log| log.len());
    let access = stage.database(&format!("storm_{}", draw.seed)).await?;
    let scene = Scene { access, dir, relay: relay.to_owned(), journal };
    let played = scene.play(stage, &draw).await;
    if let Err(error) = &played {
        scene.journal.note(format!("broken off: {error:#}"));
        std::fs::write(scene.dir.join("events.log"), scene.journal.text())?;
        std::fs::write(scene.dir.join("draw.json"), serde_json::to_string_pretty(&draw)?)?;
    }
    let passed = matches!(&played, Ok((findings, _)) if findings.verdict == Verdict::Pass);
    if passed {
        std::fs::remove_dir_all(&scene.dir)?;
    } else {
        copy_from(stage.postgres.log(), log, &scene.dir.join("postgres.log"))?;
    }
    let (findings, rate) = played.with_context(|| format!("kept in {}", scene.dir.display()))?;
    if draw.sink == Sink::Kafka {
        delete_topic(&scene.access.broker, &scene.access.database).await?;
    }
    stage.drop_database(&scene.access).await?;
    let kept = (!passed).then_some(scene.dir);
    Ok(Storm { draw, findings, journal: scene.journal, took: begun.elapsed(), rate, kept })
}

impl Scene {
    async fn play(&self, stage: &mut Stage, draw: &Draw) -> anyhow::Result<(Findings, f64)> {
        self.journal.note(draw.to_string());
        self.make_table(draw).await.context("the table")?;
        let out = self.dir.join("out.jsonl");
        let (receiver, target) = Receiver::start(draw, &self.access, &out).await.context("the receiver")?;
        self.configure(draw, &target).await?;
        let mut replicas = Replicas::start(draw.replicas, &self.relay, &self.dir, &out, &self.journal)?;
        let owner = Owner::new(draw, &self.access, &self.journal);
        let operator = Operator {
            relay: self.relay.clone(),
            config: self.dir.join(DIRECT),
            access: self.access.clone(),
            taken: owner.taken(),
            journal: self.journal.clone(),
            unexplained: Arc::default(),
        };
        let (written, rate) = self.rage(stage, draw, (&mut replicas, &receiver), owner, &operator).await?;
        let findings = tokio::select! {
            findings = self.judge(draw, &written, &receiver, &operator) => findings?,
            () = operator.watch(&receiver) => unreachable!("it watches until it is dropped"),
            ended = replicas.keep_running() => return Err(ended),
        };
        replicas.stop().await?;
        Ok((findings, rate))
    }

    /// The schema, the grants, the indexes of shards, the trigger; and what the replicas read.
    async fn configure(&self, draw: &Draw, target: &str) -> anyhow::Result<()> {
        let Access { broker, relay_broker, .. } = &self.access;
        let (url, relay_url) = (self.access.url(draw.role()), self.access.relay_url(draw.role()));
        std::fs::write(self.dir.join(CONFIG), config(draw, &relay_url, relay_broker, target))?;
        std::fs::write(self.dir.join(DIRECT), config(draw, &url, broker, target))?;
        let owner = self.dir.join("owner.toml");
        std::fs::write(&owner, config(draw, &self.access.url("postgres"), broker, target))?;
        let mut up = vec!["migrate", "up", "--relay-role", draw.role()];
        up.extend((draw.shards > 1).then_some("--indexes"));
        verb(&self.relay, &owner, &up).await?;
        self.access.owner().await?.batch_execute(&table::stamp(draw)).await.context("the stamp trigger")
    }

    /// Everybody writes, changes and fails; then everything is healed, and all that was begun is ended.
    async fn rage(
        &self,
        stage: &mut Stage,
        draw: &Draw,
        (replicas, receiver): (&mut Replicas, &Receiver),
        owner: Owner,
        operator: &Operator,
    ) -> anyhow::Result<(Written, f64)> {
        let preloaded = "SELECT count(*) FROM public.bookings";
        let preloaded: i64 = self.access.owner().await?.query_one(preloaded, &[]).await?.get(0);
        let begun = Instant::now();
        let writers = Writers::start(draw, &self.access, &self.journal);
        // Held until the session ends, and not by a transaction, which would hold the relay.
        let crowd = self.access.owner().await?;
        let locks = "SELECT count(pg_advisory_lock(n)) FROM generate_series(1, $1::bigint) AS n";
        crowd.query_one(locks, &[&i64::from(draw.locks)]).await?;
        let end = CancellationToken::new();
        let changes = AbortOnDropHandle::new(tokio::spawn(owner.work(end.clone())));
        let faults = Faults::plan(draw, &self.access, &self.journal);
        tokio::select! {
            done = faults.carry_out(draw, stage, replicas, receiver) => done?,
            () = operator.watch(receiver) => {}
        }
        end.cancel();
        stage.heal().await?;
        receiver.heal();
        replicas.heal().await?;
        let mut written = writers.stop().await?;
        let rate = written.rows as f64 / begun.elapsed().as_secs_f64();
        written.rows += u64::try_from(preloaded)?;
        drop(crowd);
        settle_prepared(&self.access, &self.journal).await?;
        tokio::time::timeout(PUT_BACK, changes).await.context("the owner does not end")??;
        self.journal.note(format!("calm; {} rows in {} transactions", written.rows, written.transactions));
        Ok((written, rate))
    }

    async fn judge(
        &self,
        draw: &Draw,
        written: &Written,
        receiver: &Receiver,
        operator: &Operator,
    ) -> anyhow::Result<Findings> {
        let owner = self.access.owner().await?;
        let mut findings = judge(draw, &owner, receiver, operator).await?;
        if let Err(error) = written.agrees_with(&bookings::committed(&owner).await?) {
            findings.verdict = Verdict::Undecided(format!("table and writers disagree: {error}"));
        }
        if findings.verdict != Verdict::Pass {
            keep(&self.dir, draw, &owner, operator, &findings).await?;
        }
        Ok(findings)
    }

    async fn make_table(&self, draw: &Draw) -> anyhow::Result<()> {
        let owner = self.access.owner().await?;
        owner.batch_execute(&table::make(draw)).await?;
        if draw.preloaded > 0 {
            owner.batch_execute(&table::preload(draw)).await?;
        }
        if draw.ddl.contains(&Ddl::AccessMethod) {
            owner.batch_execute("CREATE ACCESS METHOD second_heap TYPE TABLE HANDLER heap_tableam_handler").await?;
        }
        if draw.ddl.contains(&Ddl::Repack) && self.access.repack.is_some() {
            owner.batch_execute("CREATE EXTENSION pg_repack").await?;
        }
        Ok(())
    }
}

/// Commits what a writer prepared and could not end, because its connection or the server was gone.
pub async fn settle_prepared(access: &Access, journal: &Journal) -> anyhow::Result<()> {
    let owner = access.owner().await?;
    let left = "SELECT gid FROM pg_prepared_xacts WHERE database = current_database()";
    for row in owner.query(left, &[]).await? {
        let name: String = row.get(0);
        owner.batch_execute(&format!("COMMIT PREPARED '{name}'")).await?;
        journal.note(format!("{name} was left prepared, and is committed"));
    }
    Ok(())
}

fn copy_from(log: &Path, from: u64, to: &Path) -> anyhow::Result<()> {
    let mut source = std::fs::File::open(log)?;
    source.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    source.read_to_end(&mut bytes)?;
    Ok(std::fs::write(to, bytes)?)
}
