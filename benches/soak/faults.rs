//! What goes wrong, when: a plan from the seed, and who carries it out.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use fastrand::Rng;
use outbox_testkit::watchdog::Signal;

use super::draw::{Draw, Fault, Sink};
use super::journal::Journal;
use super::proxy::Proxy;
use super::receiver::Receiver;
use super::replicas::Replicas;
use super::stage::{Access, Stage};

/// What sessions of relays call themselves, as LIKE has it.
pub const OF_RELAYS: &str = "outbox-relay/%";
/// How often what is due is looked for.
const TICK: Duration = Duration::from_millis(100);

/// A step of the plan.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Begin(Fault, usize),
    End(Fault, usize),
}

/// See the module.
#[derive(Debug)]
pub struct Faults {
    plan: Vec<(Duration, Step)>,
    random: Rng,
    sink: Sink,
    journal: Journal,
    access: Access,
}

impl Faults {
    /// The plan of a draw.
    pub fn plan(draw: &Draw, access: &Access, journal: &Journal) -> Self {
        let mut random = Rng::with_seed(draw.seed ^ 0xfa17);
        let mut plan = Vec::new();
        for fault in &draw.faults {
            for _ in 0..random.usize(times(*fault)) {
                let (at, whom) = (draw.writing().mul_f64(0.1 + 0.75 * random.f64()), random.usize(0..draw.replicas));
                plan.push((at, Step::Begin(*fault, whom)));
                if let Some(milliseconds) = lasts(*fault, &mut random) {
                    plan.push((at + Duration::from_millis(milliseconds), Step::End(*fault, whom)));
                }
            }
        }
        plan.sort_by_key(|(at, _)| *at);
        Self { plan, random, sink: draw.sink, journal: journal.clone(), access: access.clone() }
    }

    /// Carries the plan out, for as long as the writers write.
    pub async fn carry_out(
        mut self,
        draw: &Draw,
        stage: &mut Stage,
        replicas: &mut Replicas,
        receiver: &Receiver,
    ) -> anyhow::Result<()> {
        let begun = Instant::now();
        let mut plan = std::mem::take(&mut self.plan).into_iter().peekable();
        while begun.elapsed() < draw.writing() {
            while let Some((_, step)) = plan.next_if(|(at, _)| *at <= begun.elapsed()) {
                self.take(step, stage, replicas, receiver).await.with_context(|| format!("{step:?}"))?;
            }
            replicas.revive().await?;
            tokio::time::sleep(TICK).await;
        }
        Ok(())
    }

    async fn take(
        &mut self,
        step: Step,
        stage: &mut Stage,
        replicas: &mut Replicas,
        receiver: &Receiver,
    ) -> anyhow::Result<()> {
        match step {
            Step::Begin(fault, whom) => {
                let begun = self.begin(fault, whom % replicas.len(), stage, replicas, receiver).await?;
                if let Some(what) = begun {
                    self.journal.count(fault.word(), what);
                }
            }
            Step::End(fault, whom) => {
                self.journal.note(format!("{} ends", fault.word()));
                match fault {
                    Fault::Stop => replicas.freeze(whom % replicas.len(), false).map(|_| ())?,
                    Fault::Receiver => receiver.heal(),
                    Fault::Hang if self.sink == Sink::Kafka => stage.broker.thaw()?,
                    Fault::Hang => receiver.heal(),
                    _ => {
                        stage.to_postgres.heal();
                        stage.to_broker.heal();
                    }
                }
            }
        }
        Ok(())
    }

    /// What was done; none when there was nothing to do it to.
    async fn begin(
        &mut self,
        fault: Fault,
        whom: usize,
        stage: &mut Stage,
        replicas: &mut Replicas,
        receiver: &Receiver,
    ) -> anyhow::Result<Option<String>> {
        let what = match fault {
            Fault::Kill => {
                replicas.end(whom, Signal::KILL).await?;
                format!("replica {}", whom + 1)
            }
            Fault::Term => {
                replicas.end(whom, Signal::TERM).await?;
                format!("replica {}", whom + 1)
            }
            Fault::Stop if replicas.freeze(whom, true)? => format!("replica {}", whom + 1),
            Fault::Stop => return Ok(None),
            Fault::Sessions => end_sessions(&self.access, &mut self.random, OF_RELAYS).await?,
            Fault::Writers => end_sessions(&self.access, &mut self.random, "").await?,
            Fault::Postgres => {
                stage.postgres.kill9().await?;
                stage.postgres.restart().await?;
                "killed and started again".to_owned()
            }
            Fault::Restart => {
                stage.postgres.restart().await?;
                "shut down and started again".to_owned()
            }
            Fault::Receiver if self.sink == Sink::Kafka => {
                // A frozen process takes a kill, too, and a new one is not frozen.
                stage.broker.kill9().await?;
                stage.broker.restart().await?;
                "killed and started again".to_owned()
            }
            Fault::Receiver => {
                receiver.misbehave(true);
                "refuses".to_owned()
            }
            Fault::Hang if self.sink == Sink::Kafka => {
                stage.broker.freeze()?;
                "frozen".to_owned()
            }
            Fault::Hang => {
                receiver.misbehave(false);
                "hangs".to_owned()
            }
            Fault::Delay | Fault::Cut | Fault::Silence => self.disturb(fault, [&stage.to_postgres, &stage.to_broker]),
        };
        Ok(Some(what))
    }

    /// The network on both ways.
    fn disturb(&mut self, fault: Fault, ways: [&Proxy; 2]) -> String {
        let delay = Duration::from_millis(self.random.u64(1..=200));
        for way in ways {
            match fault {
                Fault::Cut => way.cut(),
                Fault::Silence => way.silence(true),
                _ => way.delay(delay),
            }
        }
        match fault {
            Fault::Cut => "all connections".to_owned(),
            Fault::Silence => "nothing is carried".to_owned(),
            _ => format!("{delay:?} one way"),
        }
    }
}

/// Ends some of the sessions with this application name, chosen at random; without a name, of those of the application.
pub async fn end_sessions(access: &Access, random: &mut Rng, like: &str) -> anyhow::Result<String> {
    let owner = access.owner().await?;
    let sql = "SELECT pid FROM pg_stat_activity WHERE application_name LIKE $1 AND datname = current_database() \
               AND pid <> pg_backend_pid() AND ($1 <> '' OR usename = 'app')";
    let pids: Vec<i32> = owner.query(sql, &[&like]).await?.iter().map(|row| row.get(0)).collect();
    let some: Vec<i32> = pids.into_iter().filter(|_| random.u8(0..3) > 0).collect();
    owner.query("SELECT pg_terminate_backend(pid) FROM unnest($1::int[]) AS pid", &[&some]).await?;
    Ok(format!("{} sessions", some.len()))
}

/// How often in a storm.
const fn times(fault: Fault) -> std::ops::RangeInclusive<usize> {
    match fault {
        Fault::Kill | Fault::Term | Fault::Sessions | Fault::Writers | Fault::Cut => 2..=6,
        Fault::Stop => 1..=4,
        Fault::Postgres | Fault::Restart | Fault::Receiver => 1..=2,
        Fault::Hang | Fault::Delay | Fault::Silence => 1..=3,
    }
}

/// How long, in milliseconds; none for what happens at an instant.
fn lasts(fault: Fault, random: &mut Rng) -> Option<u64> {
    match fault {
        Fault::Stop => Some(random.u64(200..10_000)),
        Fault::Hang | Fault::Silence => Some(random.u64(200..6_000)),
        Fault::Receiver => Some(random.u64(200..3_000)),
        Fault::Delay => Some(random.u64(2_000..10_000)),
        Fault::Kill
        | Fault::Term
        | Fault::Sessions
        | Fault::Writers
        | Fault::Postgres
        | Fault::Restart
        | Fault::Cut => None,
    }
}
