//! The verdict: what the table has against what arrived, when everything works again.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use outbox_testkit::bookings;
use outbox_testkit::delivery::{Committed, Report, check};
use serde::Serialize;
use tokio_postgres::Client;

use super::draw::Draw;
use super::operator::Operator;
use super::receiver::{Arrived, Receiver};

/// How long nothing may move before the storm is judged as it is.
const PATIENCE: Duration = Duration::from_secs(60);
/// The same when every row that is missing has been passed: no relay comes back to it.
const PASSED: Duration = Duration::from_secs(10);
/// How long a halt that nothing explains is waited for, so that the rest arrives.
const HALTED: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(500);

/// How a storm ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "verdict", content = "what")]
pub enum Verdict {
    /// Everything that was promised.
    Pass,
    /// A promise was broken.
    Fail(String),
    /// A cursor stands still for a reason that nothing in the storm explains.
    Halted(String),
    /// Nothing can be said: the stage, not the relay, is at fault.
    Undecided(String),
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Findings {
    /// See [`Verdict`].
    pub verdict: Verdict,
    /// Rows in the table.
    pub rows: usize,
    /// Deliveries that brought nothing new.
    pub duplicates: usize,
    /// Outcomes that the relay lists as unknown (`at_most_once`).
    pub unknown: usize,
    /// Committed, not delivered, and not listed as unknown.
    pub missing: Vec<String>,
    /// How many of them the cursors have passed.
    pub passed: usize,
}

/// What is known at one look.
struct Look {
    report: Report,
    arrived: Arrived,
    unknown: HashSet<String>,
    missing: Vec<String>,
    passed: usize,
    /// Whether rows are in flight (`at_most_once`), or cursors are not there yet.
    open: bool,
}

/// Waits until everything has arrived, or nothing moves any more, and judges.
pub async fn judge(draw: &Draw, owner: &Client, receiver: &Receiver, operator: &Operator) -> anyhow::Result<Findings> {
    let committed = bookings::committed(owner).await?;
    let (mut moved, mut last) = (Instant::now(), (0, 0));
    let look = loop {
        let look = match look(draw, owner, &committed, receiver).await {
            Ok(look) => look,
            // A broker that was started a moment ago may not know its partitions yet.
            Err(error) if moved.elapsed() < PATIENCE => {
                operator.journal.note(format!("cannot look: {error:#}"));
                tokio::time::sleep(LOOK).await;
                continue;
            }
            Err(error) => return Err(error),
        };
        if look.missing.is_empty() && !look.open {
            break look;
        }
        let now = (look.report.distinct, look.missing.len());
        if std::mem::replace(&mut last, now) != now {
            moved = Instant::now();
        }
        let halted = !operator.unexplained().is_empty();
        let all_passed = look.passed == look.missing.len() && !look.open;
        let patience = if halted {
            HALTED
        } else if all_passed {
            PASSED
        } else {
            PATIENCE
        };
        if moved.elapsed() > patience {
            break look;
        }
        tokio::time::sleep(LOOK).await;
    };
    let tolerated = tolerated(draw, owner, &look, operator).await?;
    let verdict = verdict(draw, &committed, &look, &tolerated, &operator.unexplained());
    Ok(Findings {
        verdict,
        rows: committed.len(),
        duplicates: look.report.duplicates(),
        unknown: look.unknown.len(),
        passed: look.passed,
        missing: look.missing,
    })
}

async fn look(draw: &Draw, owner: &Client, committed: &Committed, receiver: &Receiver) -> anyhow::Result<Look> {
    let arrived = receiver.arrived().await?;
    let report = check(committed, &arrived.streams, &arrived.gaps);
    let unknown = owner.query("SELECT key[1] FROM outbox.claim WHERE state = 'unknown'", &[]).await?;
    let unknown: HashSet<String> = unknown.iter().map(|row| row.get(0)).collect();
    let missing: Vec<String> = report.lost.iter().filter(|id| !unknown.contains(*id)).cloned().collect();
    let state = "SELECT count(*), bool_or(token IS NOT NULL) FROM outbox.cursor";
    let state = owner.query_one(state, &[]).await?;
    let there = state.get::<_, i64>(0) == i64::from(draw.shards);
    let in_flight = draw.at_most_once && state.get::<_, Option<bool>>(1) == Some(true);
    let passed = "SELECT count(*) FROM public.bookings AS b, unnest($1::text[]) AS m(id) WHERE b.id = m.id::bigint AND b.created_at \
                  < (SELECT min(COALESCE(position_created_at, '-infinity')) FROM outbox.cursor)";
    let passed: i64 = owner.query_one(passed, &[&missing]).await?.get(0);
    Ok(Look { report, arrived, unknown, missing, passed: usize::try_from(passed)?, open: !there || in_flight })
}

/// The ids whose first delivery may come late: those that are listed as unknown, and those of a partition that was away.
async fn tolerated(draw: &Draw, owner: &Client, look: &Look, operator: &Operator) -> anyhow::Result<HashSet<String>> {
    let mut ids = if draw.at_most_once { look.unknown.clone() } else { HashSet::new() };
    if operator.journal.count_of("halt_cured") > 0 {
        for leaf in operator.taken.all() {
            let rows = owner.query(&format!("SELECT id::text FROM public.{leaf}"), &[]).await?;
            ids.extend(rows.iter().map(|row| row.get::<_, String>(0)));
        }
    }
    Ok(ids)
}

fn verdict(draw: &Draw, committed: &Committed, look: &Look, tolerated: &HashSet<String>, halts: &[String]) -> Verdict {
    let report = &look.report;
    if !report.gaps.is_empty() {
        return Verdict::Undecided(format!("the broker has lost records: {:?}", report.gaps));
    }
    if committed.is_empty() {
        return Verdict::Undecided("nothing was committed".to_owned());
    }
    let late = report.out_of_order.iter().filter(|disorder| !tolerated.contains(&disorder.id)).count();
    let twice = if draw.at_most_once { look.arrived.repeated().len() } else { 0 };
    let behind = look.missing.len() - look.passed;
    let mut broken = Vec::new();
    for (count, what) in [
        (look.passed, "lost"),
        (report.phantom.len(), "phantom"),
        (late, "out of order"),
        (report.strayed.len(), "in two streams"),
        (twice, "twice"),
    ] {
        if count > 0 {
            broken.push(format!("{what} {count}"));
        }
    }
    if broken.is_empty() && !halts.is_empty() {
        return Verdict::Halted(halts.join("; "));
    }
    if behind > 0 {
        broken.push(format!("not delivered in time {behind}"));
    }
    if broken.is_empty() && look.open {
        broken.push("rows in flight for a minute".to_owned());
    }
    broken.extend(halts.iter().map(|halt| format!("halted {halt}")));
    if broken.is_empty() { Verdict::Pass } else { Verdict::Fail(broken.join(", ")) }
}

impl Verdict {
    /// Its word, without the details.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail(_) => "FAIL",
            Self::Halted(_) => "HALTED",
            Self::Undecided(_) => "undecided",
        }
    }

    /// What is wrong; empty when nothing is.
    pub fn what(&self) -> &str {
        match self {
            Self::Pass => "",
            Self::Fail(what) | Self::Halted(what) | Self::Undecided(what) => what,
        }
    }
}

/// Everything that is known of a storm, in its directory.
pub async fn keep(
    dir: &Path,
    draw: &Draw,
    owner: &Client,
    operator: &Operator,
    findings: &Findings,
) -> anyhow::Result<()> {
    let file = |name: &str| -> PathBuf { dir.join(name) };
    std::fs::write(file("draw.json"), serde_json::to_string_pretty(draw)?)?;
    std::fs::write(file("verdict.txt"), format!("{:?}\nunknown {}\n", findings.verdict, findings.unknown))?;
    let lost = "SELECT concat_ws(E'\\t', b.id, b.created_at, b.xmin, b.ctid, b.tableoid::regclass) FROM public.bookings AS b \
                WHERE b.id::text = ANY($1) ORDER BY b.created_at, b.id";
    let mut lines = vec!["id\tcreated_at\txmin\tctid\ttable".to_owned()];
    lines.extend(owner.query(lost, &[&findings.missing]).await?.iter().map(|row| row.get::<_, String>(0)));
    std::fs::write(file("missing.tsv"), lines.join("\n"))?;
    let mut state = String::new();
    for table in ["cursor", "cursor_status", "control"] {
        let rows = owner.query(&format!("SELECT row_to_json(t)::text FROM outbox.{table} AS t"), &[]).await?;
        for row in rows {
            state.push_str(&format!("{table}\t{}\n", row.get::<_, String>(0)));
        }
    }
    std::fs::write(file("cursors.txt"), state)?;
    Ok(std::fs::write(file("events.log"), operator.journal.text())?)
}
