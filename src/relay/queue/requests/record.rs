//! Recording what became of claimed requests.
//!
//! Promise: a request is completed only when the receiver said so, and the record is on the disk before anybody is told.

use std::collections::HashSet;
use std::time::Duration;

use futures_util::future::try_join_all;

use super::job::{RequestJob, RequestOutcome};
use super::prepare::PreparedRequests;
use super::report::meaning;
use crate::cursor::ErrorReport;
use crate::database::Error;
use crate::jobs::Settlement;
use crate::jobs::ledger::{Accepted, RequestEnd, Wait};
use crate::relay::engine::deadline::within;
use crate::relay::engine::disposition::ForMessage;
use crate::relay::engine::report;
use crate::relay::engine::{Engine, Single};
use crate::relay::queue::work::{Attempt, Recorded};
use crate::sink::Class;

pub(super) type RequestAttempt = Attempt<RequestJob, RequestOutcome>;

/// Records attempts in one transaction; the outcome of each.
pub(super) async fn record(
    engine: &Engine,
    prepared: &PreparedRequests,
    attempts: &[RequestAttempt],
) -> Result<Vec<Recorded>, Error> {
    let Single { connection, right: _right } = engine.single().await?;
    let recording = async {
        let settlement = Settlement::begin(connection, true).await?;
        let accepted: Vec<Accepted<'_>> = attempts.iter().filter_map(accepted).collect();
        let completed = if accepted.is_empty() { HashSet::new() } else { settlement.complete(&accepted).await? };
        // Sent at once, answered together: a round trip for all, not for each.
        let closing = attempts.iter().map(async |attempt| match &attempt.outcome {
            RequestOutcome::Accepted(_) => Ok(completed.contains(&attempt.job.id)),
            _ => close(engine, prepared, &settlement, attempt).await,
        });
        let all = try_join_all(closing).await?;
        settlement.commit().await?;
        let recorded = |done| if done { Recorded::Done } else { Recorded::Taken { marked: false } };
        Ok(all.into_iter().map(recorded).collect())
    };
    within(engine, recording).await
}

fn accepted(attempt: &RequestAttempt) -> Option<Accepted<'_>> {
    let RequestOutcome::Accepted(receipt) = &attempt.outcome else { return None };
    Some(Accepted { request: attempt.job.named(), provider_id: receipt.id.as_deref(), reply: &receipt.reply })
}

/// Records one attempt that did not end with the receiver's acceptance; false when another replica has taken it up.
async fn close(
    engine: &Engine,
    prepared: &PreparedRequests,
    settlement: &Settlement,
    attempt: &RequestAttempt,
) -> Result<bool, Error> {
    let request = attempt.job.named();
    let failure = match &attempt.outcome {
        RequestOutcome::Accepted(_) => return Ok(true),
        RequestOutcome::Untried => {
            let wait = Wait { attempts: 0, ambiguous: false, pause: Duration::ZERO };
            return settlement.postpone(request, &untried(), wait).await;
        }
        RequestOutcome::Failed(failure) => failure,
    };
    let error = report::error(failure, None);
    let ambiguous = failure.ambiguous;
    match meaning(engine, prepared, &attempt.job, failure).message {
        ForMessage::Fails => settlement.end(request, &error, RequestEnd::Failed, ambiguous).await,
        ForMessage::Unknown => settlement.end(request, &error, RequestEnd::Unknown, ambiguous).await,
        ForMessage::Waits(wait) => {
            let pause = wait.pause(failure, prepared.config.turn.lock_kill());
            let wait = Wait { attempts: wait.attempts(), ambiguous, pause };
            settlement.postpone(request, &error, wait).await
        }
        ForMessage::Blocks | ForMessage::Isolated => {
            let wait = Wait { attempts: 0, ambiguous, pause: Duration::ZERO };
            settlement.postpone(request, &error, wait).await
        }
    }
}

fn untried() -> ErrorReport<'static> {
    ErrorReport {
        class: Class::Retry.as_str(),
        code: "not_tried",
        message: "The request was claimed and not sent: time was up, or PostgreSQL did not answer the claim's commit",
        hint: "It is retried at once.",
        message_id: None,
    }
}
