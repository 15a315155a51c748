//! Making the occurrences of schedules that are due, and computing when each is next due.
//!
//! Promise: an instant of a rule is made once, or counted as missed; replicas share the schedules, each locked for the one
//! transaction that makes its occurrences and says when it goes on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::ScheduleWork;
use super::prepare::PreparedSchedule;
use super::watch::Watched;
use crate::database::{Error, Session};
use crate::jobs::Settlement;
use crate::jobs::schedules::{self, Occurrence, Planned, Schedule};
use crate::position::Timestamp;
use crate::relay::engine::deadline::within;
use crate::relay::engine::{Engine, Single};
use crate::relay::queue::work::Context;
use crate::schedule::{Problem, Recurrence, When};

/// The most schedules of one transaction.
const SCHEDULES: i64 = 200;
/// The most actions of one schedule in one transaction; the rest follows in the next. An action with a large payload counts for many.
const OCCURRENCES: usize = 200;
/// No schedule is gone on with in a transaction that has this many actions: it must end in a call's time.
const TOGETHER: usize = 1_000;
/// So many bytes of payload count as one more action. A kilobyte may be compressed from a hundred, and is made again each time.
const BYTES: usize = 1 << 10;
/// Missed occurrences are counted up to here.
const CAP: usize = 10_000;
/// No computation is begun in a transaction after this long.
const BUDGET: Duration = Duration::from_millis(500);
/// How often it is looked for schedules whose relay nobody has ever started.
const STRAYS: Duration = Duration::from_secs(5);

/// What becomes of a schedule that is due.
#[derive(Debug, PartialEq, Eq)]
struct Plan {
    /// Instants to make, in order; whether each was missed.
    make: Vec<(Timestamp, bool)>,
    /// When it goes on; none is to be computed by the next pass.
    next: Option<Timestamp>,
    /// The newest instant that was made or passed over.
    last: Option<Timestamp>,
    /// How many were missed, made or not.
    missed: usize,
}

/// Decides. `most`: how many are made at once.
fn decide(schedule: &Schedule, now: Timestamp, watched: &Watched, most: usize) -> Result<Plan, Problem> {
    let recurrence = Recurrence::new(&When {
        rule: schedule.rule.as_deref(),
        time_zone: &schedule.time_zone,
        starts_at: schedule.starts_at,
        ends_at: schedule.ends_at,
        changed_at: schedule.changed_at,
    })?;
    let never = Timestamp::INFINITY;
    let mut plan = Plan { make: Vec::new(), next: Some(never), last: schedule.last_at, missed: 0 };
    let mut next = match schedule.next_at {
        Some(next) => Some(next),
        None => {
            let begins = if schedule.rule.is_some() { schedule.changed_at } else { Timestamp::NEG_INFINITY };
            recurrence.next(schedule.last_at.map_or(begins, |last| last.max(begins)))?
        }
    };
    while let Some(at) = next.filter(|at| *at <= now && plan.make.len() < most) {
        // What was written later than its instant came when it was written.
        let dark = watched.dark_until(at.max(schedule.changed_at));
        let (newest, count) = match dark {
            // However many there are, they are counted and not walked through.
            Some(until) if schedule.missed != "all" => {
                let before = at.minus(Duration::from_micros(1));
                recurrence.newest(before, until, CAP)?.unwrap_or((at, 1))
            }
            dark => (at, usize::from(dark.is_some())),
        };
        if dark.is_none() || schedule.missed != "none" {
            plan.make.push((newest, dark.is_some()));
        }
        plan.missed += count;
        plan.last = Some(newest);
        // What is due is made; the next pass finds the reason again, and reports it.
        next = match recurrence.next(newest) {
            Ok(next) => next,
            Err(_) => return Ok(Plan { next: None, ..plan }),
        };
    }
    plan.next = Some(next.unwrap_or(never));
    Ok(plan)
}

/// How many actions an occurrence counts for: of a schedule for each tenant, it is as many.
fn heft(schedule: &Schedule, tenants: &[String]) -> usize {
    let actions = if schedule.tenant == "*" { tenants.len().max(1) } else { 1 };
    actions * (1 + usize::try_from(schedule.bytes).unwrap_or(0) / BYTES)
}

/// What a pass over the schedules found.
#[derive(Debug)]
pub(super) struct Pass {
    /// More may be due than one transaction makes.
    pub(super) more: bool,
    /// Something was due, and this pass has made nothing of it: another session has its schedule locked.
    pub(super) elsewhere: bool,
    /// The database's clock.
    pub(super) now: Timestamp,
    /// When the next occurrence is due, if none was now.
    pub(super) next: Option<Timestamp>,
}

/// What one transaction makes.
#[derive(Debug, Default)]
struct Transaction {
    occurrences: Vec<Occurrence>,
    planned: Vec<Planned>,
    /// Each action with its status.
    made: Vec<(i64, String)>,
    missed: usize,
    /// How many actions it has, those with a large payload counted many times.
    weight: usize,
}

/// What decides about all schedules of a transaction.
struct PlanFacts<'a> {
    relay: &'a str,
    prepared: &'a PreparedSchedule,
    now: Timestamp,
    watched: Watched,
    tenants: Vec<String>,
}

impl ScheduleWork {
    /// Plans what is due.
    pub(super) async fn plan(
        &mut self,
        context: &Context<PreparedSchedule>,
        prepared: &PreparedSchedule,
        session: &Arc<Session>,
    ) -> Result<Pass, Error> {
        let (engine, name) = (&context.engine, &context.config.name);
        if self.strays.is_none_or(|looked| looked.elapsed() >= STRAYS) {
            self.strays = Some(Instant::now());
            // Another replica may not yet have seen this relay when it looked for strays.
            schedules::found(session, name, prepared.schedules.schema.is_some()).await?;
            crate::jobs::actions::release(session, name).await?;
            for (schedule, relay) in schedules::strays(session).await? {
                tracing::error!(cursor = name, schedule, relay, "schedule has a problem: its relay was never started");
            }
        }
        let first = schedules::first(session, name).await?;
        self.watch.look(first.now);
        self.watch.record(session, engine, name, first).await?;
        if first.new || first.at.is_some_and(|at| at <= first.now) {
            let more = self.transact(engine, name, prepared).await?;
            return Ok(Pass { more, elsewhere: !more, now: first.now, next: None });
        }
        Ok(Pass { more: false, elsewhere: false, now: first.now, next: first.at })
    }

    /// Makes what is due in one transaction; whether there was anything.
    async fn transact(&self, engine: &Engine, relay: &str, prepared: &PreparedSchedule) -> Result<bool, Error> {
        let Single { connection, right: _right } = engine.single().await?;
        let planning = async {
            let settlement = Settlement::begin(connection, true).await?;
            let due = settlement.due_schedules(relay, SCHEDULES).await?;
            let facts = self.facts(&settlement, relay, prepared, &due).await?;
            let mut transaction = Transaction::default();
            let begun = Instant::now();
            let mut more = false;
            for schedule in &due {
                // A rule may take a while to be found to never occur: the others follow in the next transaction.
                if begun.elapsed() > BUDGET || transaction.weight >= TOGETHER {
                    break;
                }
                more = true;
                transaction.add(&settlement, &facts, schedule).await?;
            }
            transaction.commit(settlement, &facts).await?;
            Ok(more)
        };
        within(engine, planning).await
    }

    async fn facts<'a>(
        &self,
        settlement: &Settlement,
        relay: &'a str,
        prepared: &'a PreparedSchedule,
        due: &[Schedule],
    ) -> Result<PlanFacts<'a>, Error> {
        // After the lock: what others have planned meanwhile is not due any more.
        let now: Timestamp =
            settlement.transaction().query_one("SELECT pg_catalog.clock_timestamp()", &[]).await?.try_get(0)?;
        let mut watched = Watched::promptly(now);
        watched.add(self.watch.span());
        if due.iter().any(|schedule| schedule.next_at.is_none_or(|at| watched.dark_until(at).is_some())) {
            watched.add(settlement.watched(relay).await?);
        }
        let mut tenants = Vec::new();
        if let Some(pattern) = prepared.schedules.schema.as_deref().filter(|_| due.iter().any(|of| of.tenant == "*")) {
            tenants = schedules::tenants(settlement.transaction(), pattern).await?;
        }
        Ok(PlanFacts { relay, prepared, now, watched, tenants })
    }
}

impl Transaction {
    /// Decides about one schedule.
    async fn add(&mut self, settlement: &Settlement, facts: &PlanFacts<'_>, schedule: &Schedule) -> Result<(), Error> {
        let tenants = &facts.tenants;
        let (plan, problem) = facts.decided(schedule);
        let of = |(at, queues)| Occurrence { schedule: schedule.id, planned: at, queues };
        let heavy = heft(schedule, tenants) > OCCURRENCES && schedule.tenant == "*";
        if let Some(occurrence) = plan.make.first().copied().map(of).filter(|_| heavy) {
            let most = (OCCURRENCES / heft(schedule, &[])).max(1);
            let left = settlement.tenants_left(occurrence, tenants, most + 1).await?;
            let part = &left[..left.len().min(most)];
            self.made.extend(settlement.make_actions(&[occurrence], part).await?);
            self.weight += part.len() * heft(schedule, &[]);
            if part.len() < left.len() {
                return Ok(()); // it stays due for the other tenants
            }
        } else {
            self.weight += plan.make.len() * heft(schedule, tenants);
            self.occurrences.extend(plan.make.iter().copied().map(of));
        }
        self.missed += plan.missed;
        self.planned.push(Planned { schedule: schedule.id, next: plan.next, last: plan.last, problem });
        Ok(())
    }

    async fn commit(mut self, settlement: Settlement, facts: &PlanFacts<'_>) -> Result<(), Error> {
        if !self.occurrences.is_empty() {
            self.made.extend(settlement.make_actions(&self.occurrences, &facts.tenants).await?);
        }
        if !self.planned.is_empty() {
            settlement.planned(&self.planned).await?;
        }
        settlement.commit().await?;
        let skipped = self.made.iter().filter(|(_, status)| status == "skipped").count();
        facts.prepared.counters.missed(u64::try_from(self.missed).unwrap_or(u64::MAX));
        facts.prepared.counters.skipped(u64::try_from(skipped).unwrap_or(u64::MAX));
        Ok(())
    }
}

impl PlanFacts<'_> {
    /// What becomes of one schedule; with the problem, if it has one.
    fn decided(&self, schedule: &Schedule) -> (Plan, Option<String>) {
        let (cursor, tenants) = (self.relay, &self.tenants);
        let most = (OCCURRENCES / heft(schedule, tenants)).max(1);
        let problem = match decide(schedule, self.now, &self.watched, most) {
            Ok(plan) if schedule.tenant == "*" && self.prepared.schedules.schema.is_none() => {
                drop(plan);
                Problem {
                    code: "tenants_unknown",
                    message: "the schedule is for each tenant, and its relay's [relay.source.schedule] says of no schema that it is one".to_owned(),
                }
            }
            Ok(plan) => {
                if plan.missed > 0 {
                    let (name, tenant) = (&schedule.name, &schedule.tenant);
                    let (missed, policy, made) = (plan.missed, &schedule.missed, plan.make.len());
                    tracing::warn!(
                        cursor,
                        schedule = name,
                        tenant,
                        missed,
                        policy,
                        made,
                        "occurrences were missed: no replica ran the relay"
                    );
                }
                if schedule.tenant == "*" && tenants.is_empty() && !plan.make.is_empty() {
                    tracing::warn!(
                        cursor,
                        schedule = schedule.name,
                        "no schema is a tenant's: the occurrence has no tenant"
                    );
                }
                return (plan, None);
            }
            Err(problem) => problem,
        };
        let (name, tenant, code, reason) = (&schedule.name, &schedule.tenant, problem.code, &problem.message);
        tracing::error!(cursor, schedule = name, tenant, code, reason, "schedule has a problem");
        let stopped = Plan { make: Vec::new(), next: Some(Timestamp::INFINITY), last: schedule.last_at, missed: 0 };
        (stopped, Some(format!("{}: {}", problem.code, problem.message)))
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
