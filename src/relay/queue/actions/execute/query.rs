//! Asking what an action has to report, in a transaction of its tenant's role.

use std::time::{Duration, Instant};

use super::super::job::{ActionJob, ActionOutcome};
use super::failures::{roleless, unanswered, unknown_query};
use super::{ActionExecution, ExecutionProgress, until};
use crate::database::Fragile;
use crate::relay::engine::Single;
use crate::sink::Failure;
use crate::source::action_query::{self, Query};

/// What a query has to report.
pub(super) enum QueryReport {
    /// The action has none.
    None,
    /// This.
    Rows(Vec<String>),
    /// There is nothing to do; why.
    Nothing(String),
}

impl ActionExecution {
    /// What the action's query has to report, and the action's deadline: its time begins when the query can, and what it waits for
    /// the queries of others is not of it. An error is how the action ends.
    pub(super) async fn report(
        &self,
        job: &ActionJob,
        stage: &mut ExecutionProgress,
    ) -> Result<(QueryReport, Instant), ActionOutcome> {
        let (schedules, action) = (&self.prepared.schedules, &job.action);
        let Some(name) = &action.query else { return Ok((QueryReport::None, Instant::now() + action.timeout)) };
        let query = schedules.queries.get(name);
        let query = query.ok_or_else(|| ActionOutcome::Failed(unknown_query(name, &self.prepared)))?;
        let role = schedules.role_of(&action.tenant).ok_or_else(|| ActionOutcome::Failed(roleless()))?;
        let connection = self.connection(job, true, Duration::ZERO).await?;
        self.starts(job, stage);
        let deadline = Instant::now() + action.timeout;
        match until(deadline, self.ask(job, query, &role, connection)).await {
            Some(Ok(report)) => Ok((report, deadline)),
            Some(Err(failure)) => Err(ActionOutcome::Failed(failure)),
            None => Err(ActionOutcome::TimedOut { ambiguous: false }),
        }
    }

    /// Asks the action's query.
    async fn ask(&self, job: &ActionJob, query: &Query, role: &str, single: Single) -> Result<QueryReport, Failure> {
        let Single { connection, right } = single;
        let tenant = &job.action.tenant;
        let schema = Some(tenant.as_str()).filter(|tenant| self.prepared.schedules.is_schema(tenant));
        let session = Fragile::new(connection);
        let answer = action_query::run(&session, query, Some(role), schema, &job.action.payload).await;
        let reported = answer.map_err(unanswered)?;
        session.give_back();
        drop(right);
        let (name, rows) = (&query.name, reported.rows.len());
        if !action_query::holds(query.when.as_ref(), &reported.rows).map_err(unanswered)? {
            return Ok(QueryReport::Nothing(format!("nothing to report: query {name}, {rows} rows")));
        }
        if reported.truncated {
            let (cursor, id) = (&self.prepared.config.name, job.action.id);
            tracing::warn!(
                cursor,
                id,
                query = name,
                rows,
                "the query has more rows than max_rows: the rest is left out"
            );
        }
        Ok(QueryReport::Rows(reported.rows))
    }
}
