//! `dead_versions`: a drain while an old snapshot keeps every version that the cursor's row has ever had.

use serde_json::json;
use tokio_postgres::Client;

use super::drain;
use super::figure::{median, rounded, runs};
use super::options::Options;
use super::payload::Payload;
use super::report::{Goal, Report, thousands};
use super::stage::Stage;

const RATIO: f64 = 0.9;
/// How often it is compared: one drain is soon over.
const ROUNDS: usize = 2;

/// Makes versions one after the other, each found by its place: by the index each would pass all others. Each commit
/// keeps a thousand.
const AGE: &str = "
    CREATE PROCEDURE public.age_cursor(cursor text, versions int) LANGUAGE plpgsql AS $$
    DECLARE place tid;
    BEGIN
        SET synchronous_commit = off;
        SELECT c.ctid INTO STRICT place FROM outbox.cursor AS c WHERE c.name = cursor;
        FOR i IN 1 .. versions LOOP
            UPDATE outbox.cursor AS c SET updated_at = clock_timestamp() WHERE c.ctid = place RETURNING c.ctid INTO STRICT place;
            IF i % 1000 = 0 THEN COMMIT; END IF;
        END LOOP;
    END $$";

/// Drains with a fresh cursor and with an old one, in turn.
pub async fn measure(stage: &Stage, options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let (table, rows) = (Payload::Text.table(), options.rows(Payload::Text));
    stage.fill(Payload::Text, rows).await?;
    let owner = stage.owner().await?;
    owner.batch_execute(AGE).await?;
    let (mut fresh, mut old) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        options.say(&format!("dead_versions {round}/{ROUNDS}"));
        fresh.push(drain::watch(stage, table, rows, async |_| Ok(())).await?.rows_per_second);
        let holder = stage.owner().await?;
        let age = async |name: &str| age(&owner, &holder, name, options.dead_versions).await;
        old.push(drain::watch(stage, table, rows, age).await?.rows_per_second);
        holder.batch_execute("ROLLBACK").await?;
        owner.batch_execute("VACUUM outbox.cursor").await?;
    }
    owner.batch_execute("DROP PROCEDURE public.age_cursor").await?;
    let (versions, ratio) = (options.dead_versions, median(&old) / median(&fresh));
    report.section(format!("{} dead versions of the cursor's row under an open snapshot", thousands(versions)));
    report.line("relay, fresh cursor", &fresh, "rows/s", "");
    let note = format!("{ratio:.2} of that; {}", Goal::Least(RATIO).told(ratio));
    report.line("relay, dead versions", &old, "rows/s", note);
    report.results.push(json!({"name": "dead_versions", "payload": "text", "payload_bytes": 200, "rows": rows,
        "cursors": 1, "replicas": 1, "dead_versions": versions, "rows_per_second": rounded(median(&old)),
        "ratio": rounded(ratio), "runs": runs(&old)}));
    Ok(())
}

/// Opens the snapshot and makes the versions.
async fn age(owner: &Client, holder: &Client, name: &str, versions: u64) -> anyhow::Result<()> {
    holder.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM outbox.cursor").await?;
    Ok(owner.batch_execute(&format!("CALL public.age_cursor('{name}', {versions})")).await?)
}
