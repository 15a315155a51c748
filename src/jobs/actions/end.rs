//! Recording what became of actions.

use std::time::Duration;

use tokio_postgres::types::ToSql;

use super::{ActionEnd, NamedAction, PROMOTE, RecordedAction, split};
use crate::cursor::status;
use crate::cursor::{ErrorReport, Taking};
use crate::database::Error;
use crate::jobs::Settlement;
use crate::position::Timestamp;

/// Nobody else's lock is waited for: an application's transaction may hold it for long, behind an edit that queues an action.
const FINISH: &str = include_str!("../sql/actions_end_finish.sql");

const WAIT: &str = include_str!("../sql/actions_end_wait.sql");

/// When it was due stays: it keeps its place before others. The claim has written over when it was last begun.
const PUT_BACK: &str = include_str!("../sql/actions_end_put_back.sql");

const HELD: &str = "SELECT FROM outbox.action AS a WHERE a.action_id = $1 AND a.token = $2";

impl Settlement {
    /// The action ends.
    ///
    /// # Errors
    /// The database's.
    pub async fn end_action(&self, action: NamedAction<'_>, end: ActionEnd<'_>) -> Result<RecordedAction, Error> {
        let (status, result, error) = match end {
            ActionEnd::Completed(result) => ("completed", Some(result), None),
            ActionEnd::Skipped(why) => ("skipped", Some(why), None),
            ActionEnd::Failed(error) => ("failed", None, Some(status::json(error))),
        };
        let ran = action.ran.map(|ran| ran.as_secs_f64());
        let parameters: [&(dyn ToSql + Sync); 6] = [&action.id, &action.token, &status, &result, &error, &ran];
        self.recorded(action, Taking { sql: FINISH, parameters: &parameters }).await
    }

    /// The action is retried after a pause, `attempts` failures being added.
    ///
    /// # Errors
    /// The database's.
    pub async fn retry_action(
        &self,
        action: NamedAction<'_>,
        error: &ErrorReport<'_>,
        attempts: i32,
        pause: Duration,
    ) -> Result<RecordedAction, Error> {
        let (error, pause, ran) = (status::json(error), pause.as_secs_f64(), action.ran.map(|ran| ran.as_secs_f64()));
        let parameters: [&(dyn ToSql + Sync); 6] = [&action.id, &action.token, &pause, &attempts, &error, &ran];
        self.recorded(action, Taking { sql: WAIT, parameters: &parameters }).await
    }

    /// The action was not begun: it is due again as it was before its claim, and `begun_before` is when it was last begun.
    ///
    /// # Errors
    /// The database's.
    pub async fn put_back_action(
        &self,
        action: NamedAction<'_>,
        begun_before: Option<Timestamp>,
    ) -> Result<RecordedAction, Error> {
        let parameters: [&(dyn ToSql + Sync); 3] = [&action.id, &action.token, &begun_before];
        self.recorded(action, Taking { sql: PUT_BACK, parameters: &parameters }).await
    }

    /// Of this relay's schedules whose actions have ended, by id and tenant, the first that is queued becomes due.
    ///
    /// # Errors
    /// The database's.
    pub async fn promote_actions(&self, relay: &str, ended: &[(i64, String)]) -> Result<(), Error> {
        let (ids, tenants) = split(ended);
        self.query(Taking { sql: PROMOTE, parameters: &[&ids, &tenants, &relay] }).await.map(drop)
    }

    async fn recorded(&self, action: NamedAction<'_>, taking: Taking<'_>) -> Result<RecordedAction, Error> {
        if let Some(row) = self.query(taking).await?.first() {
            return Ok(RecordedAction::Of((row.try_get(0)?, row.try_get(1)?)));
        }
        let held = self.query(Taking { sql: HELD, parameters: &[&action.id, &action.token] }).await?;
        Ok(if held.is_empty() { RecordedAction::Lost } else { RecordedAction::Locked })
    }
}
