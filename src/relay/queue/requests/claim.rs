//! Claims requests: what is sent is pinned in the claim's transaction.

use std::borrow::Cow;
use std::time::Instant;

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::RequestWork;
use super::job::{RequestJob, RequestPlan};
use super::prepare::{PreparedRequests, key_memory};
use super::rendering::Rendering;
use crate::batch::Batch;
use crate::cursor::{ErrorReport, LockedCursor, Taking};
use crate::database::Error;
use crate::database::codec::Raw;
use crate::jobs::ledger;
use crate::position::Timestamp;
use crate::relay::OnUnknown;
use crate::relay::engine::Engine;
use crate::relay::queue::work::Claim;
use crate::sink::Class;
use crate::source::lane::Reach;
use crate::source::requests::lane_take_sql;

/// What a claim came to.
#[derive(Debug)]
pub(super) struct ClaimedRequests {
    pub(super) jobs: Vec<RequestJob>,
    /// How many more are unknown now, for a person to decide.
    pub(super) given_up: usize,
    /// How many another replica had when it ended, with those that were given up.
    pub(super) interrupted: usize,
}

/// Columns of a taken row in front of the sink's fields.
const FIXED: usize = 8;

/// A row that the claim has locked.
struct Taken {
    id: String,
    due_at: Timestamp,
    attempts: i32,
    pinned: Option<Vec<u8>>,
    interrupted: bool,
    /// The receiver may know its key.
    known: bool,
    /// The receiver may have forgotten its key.
    forgotten: bool,
    message: Batch,
}

/// Claims requests; each is pinned, or was before. Of a claim that fails, `slowest` is the one that took longest to be rendered, if it
/// came to that.
pub(super) async fn claim(
    claim: Claim<'_, RequestWork>,
    slowest: &mut Option<Rendering>,
) -> Result<ClaimedRequests, Error> {
    *slowest = None;
    let (cursor, size) = (claim.cursor, &claim.prepared.size);
    let allowed = size.allowed();
    let most = size.begin(claim.room);
    let builder = RequestClaimBuilder {
        engine: claim.engine,
        prepared: claim.prepared,
        token: format!("{:032x}", fastrand::u128(..)),
    };
    let mut taken = Vec::new();
    if claim.found.interrupted {
        taken = builder.take(cursor, &claim.prepared.interrupted_sql, most).await?;
    }
    for sql in builder.due_sql(&claim).iter() {
        if taken.len() < most {
            taken.extend(builder.take(cursor, sql, most - taken.len()).await?);
        }
    }
    let interrupted = taken.iter().filter(|taken| taken.interrupted).count();
    let (given_up, taken): (Vec<Taken>, Vec<Taken>) = taken.into_iter().partition(|taken| builder.is_over(taken));
    builder.give_up(cursor, &given_up).await?;
    let jobs = builder.jobs(taken, slowest);
    let claimed: Vec<ledger::ClaimedRequest<'_>> = jobs
        .iter()
        .map(|(job, interrupted)| ledger::ClaimedRequest {
            id: &job.id,
            body: job.body().filter(|_| !job.pinned_before),
            interrupted: *interrupted,
        })
        .collect();
    if !claimed.is_empty() {
        let lease = claim.prepared.config.turn.lock_kill();
        cursor.claim_requests(&builder.token, &claim.engine.replica, lease, &claimed).await?;
    }
    size.succeeded(most, allowed);
    *slowest = None;
    let jobs = jobs.into_iter().map(|(job, _)| job).collect();
    Ok(ClaimedRequests { jobs, given_up: given_up.len(), interrupted })
}

struct RequestClaimBuilder<'a> {
    engine: &'a Engine,
    prepared: &'a PreparedRequests,
    token: String,
}

impl RequestClaimBuilder<'_> {
    /// What takes requests that are due; with lanes, one of each.
    fn due_sql(&self, claim: &Claim<'_, RequestWork>) -> Cow<'_, [String]> {
        match &self.prepared.requests.lanes {
            Some(lanes) => {
                let reach = Reach { jobs: claim.found.jobs, probes: claim.probes };
                Cow::Owned(vec![lane_take_sql(lanes, self.prepared.sink.fields(), reach)])
            }
            None => Cow::Borrowed(&self.prepared.take_sql),
        }
    }

    async fn take(&self, cursor: &LockedCursor, sql: &str, most: usize) -> Result<Vec<Taken>, Error> {
        let once = self.engine.once();
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        // What is claimed now may still be sent a lease later.
        let memory = key_memory(&self.prepared.config.sink)
            .map(|memory| memory.saturating_sub(self.prepared.config.turn.lock_kill()).as_secs_f64());
        let parameters: [&(dyn ToSql + Sync); 4] = [&self.prepared.config.name, &once, &most, &memory];
        let rows = cursor.claim(Taking { sql, parameters: &parameters }).await?;
        rows.iter().map(|row| self.taken(row)).collect()
    }

    fn taken(&self, row: &Row) -> Result<Taken, Error> {
        let id: String = row.try_get(0)?;
        let fields = self.prepared.sink.fields().len();
        let values: Vec<Option<Raw<'_>>> =
            (0..fields).map(|n| row.try_get(FIXED + n)).collect::<Result<_, tokio_postgres::Error>>()?;
        let mut message = Batch::new(fields);
        message.push(row.try_get(7)?, &id, values.iter().map(|value| value.map(|Raw(bytes)| bytes)));
        Ok(Taken {
            due_at: row.try_get(1)?,
            attempts: row.try_get(2)?,
            pinned: row.try_get(3)?,
            interrupted: row.try_get(4)?,
            known: row.try_get(5)?,
            forgotten: row.try_get(6)?,
            id,
            message,
        })
    }

    /// Whether nothing is tried with the request any more: a person must decide.
    fn is_over(&self, taken: &Taken) -> bool {
        taken.forgotten || taken.interrupted && self.prepared.config.on_unknown == OnUnknown::DeadLetter
    }

    async fn give_up(&self, cursor: &LockedCursor, over: &[Taken]) -> Result<(), Error> {
        for (interrupted, forgotten) in [(true, false), (true, true), (false, true)] {
            let of = over.iter().filter(|taken| (taken.interrupted, taken.forgotten) == (interrupted, forgotten));
            let ids: Vec<&str> = of.map(|taken| taken.id.as_str()).collect();
            if ids.is_empty() {
                continue;
            }
            let (code, message) = if forgotten {
                ("key_forgotten", "it may have been sent, and the receiver may have forgotten its idempotency key")
            } else {
                (
                    "interrupted",
                    "a claim ended without a record: a replica ended or was cut off, or PostgreSQL did not answer it; sent or not",
                )
            };
            let hint = "See at the receiver whether it has arrived; `outbox-relay request redrive ID` sends it again.";
            let error = ErrorReport { class: Class::Retry.as_str(), code, message, hint, message_id: None };
            cursor.give_up_requests(&ids, interrupted, &error).await?;
            for id in ids {
                tracing::error!(cursor = self.prepared.config.name, id, code, hint, "request: outcome unknown");
            }
        }
        Ok(())
    }

    /// What is to be done with each, and whether a replica had been about to do it.
    fn jobs(&self, taken: Vec<Taken>, slowest: &mut Option<Rendering>) -> Vec<(RequestJob, bool)> {
        let alone = taken.len() == 1;
        let job = |taken| {
            let begun = Instant::now();
            let (job, interrupted) = self.job(taken);
            let took = begun.elapsed();
            if slowest.as_ref().is_none_or(|slowest| took > slowest.took) {
                *slowest = Some(Rendering { id: job.id.clone(), attempts: job.attempts, took, alone });
            }
            (job, interrupted)
        };
        taken.into_iter().map(job).collect()
    }

    /// What is to be done, and whether somebody had been about to do it.
    fn job(&self, taken: Taken) -> (RequestJob, bool) {
        let interrupted = taken.interrupted;
        if interrupted {
            let (cursor, id, asked) =
                (&self.prepared.config.name, &taken.id, self.prepared.config.on_unknown == OnUnknown::Ask);
            tracing::warn!(
                cursor,
                id,
                asked,
                "a replica ended or was cut off while it had the request: it is taken up again"
            );
        }
        let pinned_before = taken.pinned.is_some();
        let plan = match taken.pinned.map_or_else(|| self.prepared.sink.pin(&taken.message.message(0)), Ok) {
            Err(failure) => RequestPlan::Refused(failure),
            Ok(body) if (taken.known || interrupted) && self.prepared.config.on_unknown == OnUnknown::Ask => {
                RequestPlan::Ask(body)
            }
            Ok(body) => RequestPlan::Send(body),
        };
        let job = RequestJob {
            id: taken.id,
            token: self.token.clone(),
            attempts: taken.attempts,
            due_at: taken.due_at,
            claimed: Instant::now(),
            again: taken.known || interrupted,
            pinned_before,
            plan,
            message: taken.message,
        };
        (job, interrupted)
    }
}
