//! `backlog`: millions of rows wait when the relay starts.

use anyhow::ensure;
use serde_json::json;
use tokio_postgres::Client;

use super::drain::{self, Watched};
use super::figure::{mib, rounded};
use super::options::Options;
use super::payload::Payload;
use super::report::{Goal, Report, thousands};
use super::stage::Stage;

const TABLE: &str = "public.bookings_backlog";

const FIRST_S: f64 = 1.0;
const MEMORY_MIB: f64 = 100.0;
const RATIO: f64 = 0.9;

/// Drains a table of the usual size, then the large one; both as a watcher of the topic sees it.
pub async fn measure(stage: &Stage, options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let (rows, usual) = (options.backlog, options.rows(Payload::Text));
    let owner = stage.owner().await?;
    stage.fill(Payload::Text, usual).await?;
    options.say(&format!("backlog: filling {} rows", thousands(rows)));
    stage.table(TABLE).await?;
    stage.fill_table(TABLE, Payload::Text.column_bytes(), rows).await?;
    options.say("backlog: the usual");
    let steady = drain::watch(stage, Payload::Text.table(), usual, async |_| Ok(())).await?;
    options.say("backlog: all of them");
    let before = sequential_scans(&owner).await?;
    let Watched { first_s, rows_per_second, rss_max_bytes } =
        drain::watch(stage, TABLE, rows, async |_| Ok(())).await?;
    let scans = sequential_scans(&owner).await? - before;
    owner.batch_execute(&format!("DROP TABLE {TABLE}")).await?;

    let ratio = rows_per_second / steady.rows_per_second;
    report.section(format!("backlog of {} rows (text, 200 B), by a watcher of the topic", thousands(rows)));
    report.judged("first row after the start", &[first_s], "s", Goal::Most(FIRST_S));
    report.line("relay, a backlog of the usual size", &[steady.rows_per_second], "rows/s", thousands(usual) + " rows");
    let note = format!("{ratio:.2} of that; {}", Goal::Least(RATIO).told(ratio));
    report.line("relay, this backlog", &[rows_per_second], "rows/s", note);
    report.judged("memory at most", &[mib(rss_max_bytes)], "MiB", Goal::Most(MEMORY_MIB));
    report.judged("sequential scans of the table", &[scans as f64], "", Goal::Most(0.0));
    report.results.push(json!({"name": "backlog", "payload": "text", "payload_bytes": 200, "rows": rows, "cursors": 1,
        "replicas": 1, "rows_per_second": rounded(rows_per_second), "ratio": rounded(ratio), "first_row_s": rounded(first_s),
        "rss_max_bytes": rss_max_bytes, "sequential_scans": scans}));
    Ok(())
}

/// How often the whole table was read: the plan of every fetch must use the index.
async fn sequential_scans(owner: &Client) -> anyhow::Result<i64> {
    let sql = "SELECT seq_scan, idx_scan FROM pg_stat_user_tables WHERE relid = $1::text::regclass";
    let row = owner.query_one(sql, &[&TABLE]).await?;
    ensure!(row.get::<_, Option<i64>>(1).is_some(), "{TABLE} has no index");
    Ok(row.get(0))
}
