//! What the application writes, and what the database has at the end.

use tokio_postgres::{Client, Row};

use super::judge::{Action, Occurrence};
use super::timetable::{Edit, Timetable};
use super::{HEALTHY, RELAY};
use outbox_relay::position::Timestamp;

const WRITE: &str = "
    INSERT INTO outbox.schedule (tenant, name, relay, rule, starts_at, ends_at, missed, overlap, on_interrupted, timeout)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10::text::interval)";

/// The 30th of February.
const IMPOSSIBLE: &str = "
    INSERT INTO outbox.schedule (tenant, name, relay, rule)
    VALUES ('green', 'impossible', $1, 'FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30')";

const ACTIONS: &str = "SELECT tenant, schedule, planned_at, action_id::text, status FROM outbox.action";
const PROBLEM: &str = "SELECT problem FROM outbox.schedule WHERE name = 'impossible'";
const HELD: &str = "
    SELECT action_id::text, tenant, schedule FROM outbox.action WHERE status = 'running' AND claimed_by = $1";
const HOLDER: &str = "
    SELECT claimed_by FROM outbox.action WHERE status = 'running' AND tenant = ANY ($1)
    GROUP BY claimed_by ORDER BY count(*) DESC LIMIT 1";
const SESSIONS: &str = "
    SELECT count(DISTINCT application_name) FROM pg_catalog.pg_stat_activity 
    WHERE pg_catalog.replace(application_name, '/sql:', '/') LIKE 'outbox-relay/' || $1";
const OPEN: &str = "
    SELECT (SELECT count(*) FROM outbox.action WHERE status IN ('queued', 'due', 'running'))
         + (SELECT count(*) FROM outbox.schedule WHERE enabled AND next_at IS DISTINCT FROM 'infinity')";
const COUNTS: &str = "
    SELECT tenant, count(*) FILTER (WHERE status = 'completed'), count(*) FILTER (WHERE status = 'failed'),
           count(*) FILTER (WHERE status = 'skipped'), count(*) FILTER (WHERE status IN ('queued', 'due', 'running'))
    FROM outbox.action GROUP BY tenant ORDER BY tenant";

/// Writes every schedule, as an application.
pub(super) async fn write(app: &Client, table: &Timetable) -> anyhow::Result<()> {
    for entry in table.entries() {
        let rule = entry.every.map(|seconds| format!("FREQ=SECONDLY;INTERVAL={seconds}"));
        let to = rule.is_some().then_some(entry.to);
        let (missed, overlap, interrupted, timeout) =
            (entry.missed, entry.overlap, entry.on_interrupted, entry.timeout);
        app.execute(
            WRITE,
            &[&entry.tenant, &entry.name, &RELAY, &rule, &entry.from, &to, &missed, &overlap, &interrupted, &timeout],
        )
        .await?;
    }
    app.execute(IMPOSSIBLE, &[&RELAY]).await?;
    Ok(())
}

/// Does this, as an application; when the database did it.
pub(super) async fn edit(app: &Client, table: &Timetable, edit: Edit) -> anyhow::Result<Timestamp> {
    let row = match edit {
        Edit::Redate => {
            let sql = "UPDATE outbox.schedule SET starts_at = $1 WHERE name = 'another date' RETURNING changed_at";
            app.query_one(sql, &[&table.redated_to()]).await?
        }
        Edit::Rerule => {
            let sql = "UPDATE outbox.schedule SET rule = 'FREQ=SECONDLY;INTERVAL=3', starts_at = $1 \
                       WHERE name = 'another rule' RETURNING changed_at";
            app.query_one(sql, &[&table.reruled_to()]).await?
        }
        Edit::Pause | Edit::Resume => {
            let sql = "UPDATE outbox.schedule SET enabled = $1 WHERE name = 'paused' RETURNING changed_at";
            app.query_one(sql, &[&(edit == Edit::Resume)]).await?
        }
        Edit::Delete => {
            let sql = "DELETE FROM outbox.schedule WHERE name = 'deleted' RETURNING pg_catalog.clock_timestamp()";
            app.query_one(sql, &[]).await?
        }
    };
    Ok(row.get(0))
}

/// Every action.
pub(super) async fn actions(owner: &Client) -> anyhow::Result<Vec<Action>> {
    let action = |row: &Row| Action {
        of: Occurrence { tenant: row.get(0), schedule: row.get(1), planned: row.get(2) },
        id: row.get(3),
        status: row.get(4),
    };
    Ok(owner.query(ACTIONS, &[]).await?.iter().map(action).collect())
}

/// What was said of the rule that never happens.
pub(super) async fn problem(owner: &Client) -> anyhow::Result<Option<String>> {
    Ok(owner.query_one(PROBLEM, &[]).await?.get(0))
}

/// What this replica left behind: ids, and whose they are.
pub(super) async fn held(owner: &Client, replica: &str) -> anyhow::Result<Vec<(String, (String, String))>> {
    let rows = owner.query(HELD, &[&replica]).await?;
    Ok(rows.iter().map(|row| (row.get(0), (row.get(1), row.get(2)))).collect())
}

/// The replica that has the most of the healthy tenants' in hand.
pub(super) async fn holder(owner: &Client) -> anyhow::Result<Option<String>> {
    let row = owner.query_opt(HOLDER, &[&HEALTHY.as_slice()]).await?;
    Ok(row.map(|row| row.get(0)))
}

/// How many of the replicas that are called like this (`%`: all) have sessions.
pub(super) async fn connected(owner: &Client, replica: &str) -> anyhow::Result<i64> {
    Ok(owner.query_one(SESSIONS, &[&replica]).await?.get(0))
}

/// How many actions have not ended, and how many schedules go on.
pub(super) async fn open(owner: &Client) -> anyhow::Result<i64> {
    Ok(owner.query_one(OPEN, &[]).await?.get(0))
}

/// The present, a line a tenant.
pub(super) async fn lines(owner: &Client) -> anyhow::Result<Vec<String>> {
    let line = |row: &Row| {
        let (tenant, counts): (String, [i64; 4]) = (row.get(0), [1, 2, 3, 4].map(|column| row.get(column)));
        let [completed, failed, skipped, open] = counts;
        format!("{tenant:<6} completed {completed:>4}   failed {failed:>3}   skipped {skipped:>3}   open {open:>3}")
    };
    Ok(owner.query(COUNTS, &[]).await?.iter().map(line).collect())
}
