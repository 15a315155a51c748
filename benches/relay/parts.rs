//! The parts of a run, one after the other. One that fails does not keep the others from being measured.

use anyhow::Context as _;

use super::options::{Options, PARTS};
use super::read_model::{KINDS, Models};
use super::report::Report;
use super::stage::Stage;
use super::{
    ask, audit, backlog, claim, compare, dead, delay, formats, idle, lanes, latency, many, page, parked, primary_load,
    produce, rates, read_model, rules, schedules, shards, takeover, telemetry_load, verify, wake,
};

/// Runs all that is asked for.
pub async fn measure(stage: &Stage, options: &Options) -> Report {
    let mut report = Report::default();
    let parts = options.parts();
    if parts.iter().any(|part| PARTS.iter().any(|(name, _)| name == part)) {
        options.say("warming up the broker");
        if let Err(error) = produce::warm(stage, options.seconds).await {
            options.say(&format!("warming up FAILED: {error:#}"));
            report.failed.push(format!("warming up: {error:#}"));
            return report;
        }
    }
    for (index, part) in parts.iter().enumerate() {
        let left = &parts[index + 1..];
        let minutes: f64 = PARTS.iter().filter(|(name, _)| left.contains(name)).map(|(_, minutes)| minutes).sum();
        let then = if left.is_empty() { "the last".to_owned() } else { format!("then {}", left.join(", ")) };
        let about =
            if options.is_whole() && minutes > 0.0 { format!(", about {minutes:.0} min") } else { String::new() };
        options.say(&format!("part {}/{}: {part} ({then}{about})", index + 1, parts.len()));
        if let Err(error) = one(part, stage, options, &mut report).await {
            options.say(&format!("{part} FAILED: {error:#}"));
            report.failed.push(format!("{part}: {error:#}"));
        }
    }
    report
}

async fn one(part: &str, stage: &Stage, options: &Options, report: &mut Report) -> anyhow::Result<()> {
    stage.rest().await?;
    match part {
        "rates" => rates::measure(stage, options, report).await,
        "delay" => delay::measure(stage, options, report).await,
        "latency" => latency::measure(stage, options, report).await,
        "primary_load" => primary_load::measure(stage, options, report).await,
        "lanes" => lanes::measure(stage, options, report).await,
        "audit" => audit::measure(stage, options, report).await,
        "formats" => formats::measure(stage, options, report).await,
        "page" => page::measure(stage, options, report).await,
        "telemetry" => telemetry_load::measure(stage, options, report).await,
        "verify" => verify::measure(stage, options, report).await,
        "parked" => parked::measure(stage, options, report).await,
        "takeover" => takeover::measure(stage, options, report).await,
        "idle" => idle::measure(stage, options, report).await,
        "many_cursors" => many::measure(stage, options, report).await,
        "backlog" => backlog::measure(stage, options, report).await,
        "dead_versions" => dead::measure(stage, options, report).await,
        "shards" => shards::measure(stage, options, report).await,
        "compare" => compare::measure(stage, options, report).await,
        "pending" => pending(stage, options, report).await,
        "sql" => sql(stage, options, report).await,
        "intake" => intake(stage, options, report).await,
        "rules" => computed(options, report),
        "schedules" => {
            schedules::measure(stage, options).await?.tell(report);
            Ok(())
        }
        _ => anyhow::bail!("no such part"),
    }
}

/// Due work: claims by one replica and by three, and how late single rows are.
async fn pending(stage: &Stage, options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let mut all = [1, 3].map(|replicas| claim::Claims::of(replicas, options.due));
    let mut watched = Vec::new();
    for round in 1..=options.rounds {
        for claims in &mut all {
            options.say(&format!("pending {round}/{}, {} replicas", options.rounds, claims.replicas));
            claims.measure(stage, round).await.context("pending_claim")?;
        }
        options.say(&format!("pending {round}/{}, single rows", options.rounds));
        watched.push(wake::measure(stage, options, round).await.context("pending_wake")?);
    }
    report.section("due work");
    all.iter().for_each(|claims| claims.tell(report));
    wake::tell(&watched, report);
    Ok(())
}

async fn sql(stage: &Stage, options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let mut all = KINDS.map(|kind| Models::of(kind, options.models));
    for round in 1..=options.rounds {
        for models in &mut all {
            let read_model::Kind { model, each } = models.kind;
            options.say(&format!("sql {round}/{}, {model} by {each}", options.rounds));
            models.measure(stage, round).await?;
        }
    }
    report.section("read models");
    all.iter().for_each(|models| models.tell(report));
    Ok(())
}

async fn intake(stage: &Stage, options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let mut asked = Vec::new();
    for round in 1..=options.rounds {
        options.say(&format!("ledger and intake {round}/{}", options.rounds));
        asked.push(ask::measure(stage, options.calls).await?);
    }
    report.section("ledger and intake");
    ask::tell(&asked, report);
    Ok(())
}

fn computed(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let rates =
        (0..options.rounds).map(|_| rules::measure(options.computations)).collect::<anyhow::Result<Vec<_>>>()?;
    report.section("recurrence rules");
    rules::tell(&rates, report);
    Ok(())
}
