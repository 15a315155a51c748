//! Recording what became of claimed actions.
//!
//! Promise: what was done is recorded before anybody is told.

use std::time::Duration;

use super::job::{ActionJob, ActionOutcome};
use super::report::{failure_of, meaning};
use crate::cursor::ErrorReport;
use crate::database::Error;
use crate::jobs::Settlement;
use crate::jobs::actions::{self, ActionEnd};
use crate::relay::engine::deadline::within;
use crate::relay::engine::{Engine, Single};
use crate::relay::queue::work::{Attempt, Recorded};
use crate::visible::bounded;

/// As much of a message or a hint as an action's error holds.
const LONGEST: usize = 1_500;
/// As much of a result as an action holds.
const RESULT: usize = 8_192;

pub(super) type ActionAttempt = Attempt<ActionJob, ActionOutcome>;

/// Records attempts in one transaction, and lets what was queued after them go on; the outcome of each.
pub(super) async fn record(engine: &Engine, relay: &str, attempts: &[ActionAttempt]) -> Result<Vec<Recorded>, Error> {
    if attempts.iter().all(|attempt| matches!(attempt.outcome, ActionOutcome::Recorded)) {
        return Ok(vec![Recorded::Done; attempts.len()]);
    }
    let Single { connection, right: _right } = engine.single().await?;
    let recording = async {
        let settlement = Settlement::begin(connection, true).await?;
        let (mut all, mut ended) = (Vec::with_capacity(attempts.len()), Vec::new());
        for attempt in attempts {
            let closed = close(&settlement, attempt).await?;
            all.push(match closed {
                Closed::Ended(of) => {
                    ended.push(of);
                    Recorded::Done
                }
                Closed::Waits => Recorded::Done,
                Closed::Locked => Recorded::NotYet,
                Closed::Lost => Recorded::Taken { marked: false },
            });
        }
        if !ended.is_empty() {
            settlement.promote_actions(relay, &ended).await?;
        }
        settlement.commit().await?;
        Ok(all)
    };
    within(engine, recording).await
}

/// What recording one attempt came to.
enum Closed {
    /// Of this schedule and this tenant.
    Ended((i64, String)),
    /// For its next try, or it was recorded already.
    Waits,
    /// Its row is locked.
    Locked,
    Lost,
}

impl Closed {
    /// Of one that was to be due again.
    fn waiting(recorded: actions::RecordedAction) -> Self {
        match recorded {
            actions::RecordedAction::Of(_) => Self::Waits,
            actions::RecordedAction::Locked => Self::Locked,
            actions::RecordedAction::Lost => Self::Lost,
        }
    }
}

async fn close(settlement: &Settlement, attempt: &ActionAttempt) -> Result<Closed, Error> {
    let named = attempt.job.named();
    let ended = match &attempt.outcome {
        ActionOutcome::Done(result) => {
            settlement.end_action(named, ActionEnd::Completed(&bounded(result, RESULT))).await?
        }
        ActionOutcome::Skipped(why) => settlement.end_action(named, ActionEnd::Skipped(&bounded(why, RESULT))).await?,
        ActionOutcome::NotBegun => {
            let put_back = settlement.put_back_action(named, attempt.job.action.begun_before).await?;
            return Ok(Closed::waiting(put_back));
        }
        outcome => {
            let Some(failure) = failure_of(outcome) else { return Ok(Closed::Waits) }; // recorded already
            let (message, hint) = (bounded(&failure.message, LONGEST), bounded(&failure.hint, LONGEST));
            let error = ErrorReport {
                class: failure.class.as_str(),
                code: &failure.code,
                message: &message,
                hint: &hint,
                message_id: None,
            };
            match meaning(attempt, &failure).message.wait() {
                None => settlement.end_action(named, ActionEnd::Failed(&error)).await?,
                Some(wait) => {
                    let pause = wait.pause(&failure, Duration::ZERO);
                    let waits = settlement.retry_action(named, &error, wait.attempts(), pause).await?;
                    return Ok(Closed::waiting(waits));
                }
            }
        }
    };
    Ok(match ended {
        actions::RecordedAction::Of(of) => Closed::Ended(of),
        actions::RecordedAction::Locked => Closed::Locked,
        actions::RecordedAction::Lost => Closed::Lost,
    })
}
