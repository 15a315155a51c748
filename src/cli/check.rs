//! `outbox-relay check`: can every relay do its work?

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::deadline::within;
use super::format::Format;
use super::intake;
use super::output::{complain, print};
use super::table::visible;
use crate::config::{Config, parse_duration};
use crate::relay::inspect::check::{Found, check};
use crate::relay::inspect::observe::observe;
use crate::sink::kafka::Cluster;
use crate::source::finding::{Finding, Level};

/// Arguments of `check`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  outbox-relay check
  outbox-relay check -o json | jq '.findings[] | select(.level == \"error\")'
  outbox-relay --config new.toml check
      before a rollout: what it changes about the cursors that are there
  outbox-relay check --observe 60s
      what lag is achievable: writers, their times, growth, snapshots

Exit codes: 0 when there are warnings only, 3 with any error, a server that cannot be asked included. As an init container it \
stops a rollout that needs a decision: another table or topic under a cursor's name, a renamed relay. A halted cursor is a \
warning, so that a pod with the same configuration comes back, and one with the configuration that ends the halt starts.")]
pub struct Args {
    /// How to print the findings
    #[arg(short = 'o', long = "output", value_enum, default_value_t)]
    pub output: Format,
    /// Look at the tables for so long, for example 60s: who holds rows back, which lag is achievable
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub observe: Option<Duration>,
}

/// Checks.
///
/// # Errors
/// When a server cannot be asked.
pub async fn run(config: Config, args: Args, limit: Option<Duration>) -> anyhow::Result<ExitCode> {
    let begun = Instant::now();
    let sessions = super::sessions(&config, "check");
    let cluster = config.kafka.clone().map(|kafka| Arc::new(Cluster::new(kafka)));
    let mut found = Found::default();
    let asking = async {
        check(&sessions, cluster.as_ref(), &config.relays, &mut found).await;
        Ok(())
    };
    let in_time = within(limit, asking).await;
    let Found { mut findings, step } = found;
    findings.extend(in_time.err().map(|_| late(&step, limit)));
    let reachable = findings.iter().all(|finding| !finding.relay.is_empty() || finding.level < Level::Error);
    if let Some(time) = args.observe.filter(|_| reachable) {
        let left = limit.map(|limit| limit.saturating_sub(begun.elapsed()));
        let watcher = super::watcher(&config, "check");
        let observing = async { Ok(observe((&sessions, watcher), &config.relays, time, complain).await) };
        match within(left, observing).await {
            Ok(Ok(observed)) => findings.extend(observed),
            Err(_) => findings.push(late("PostgreSQL, to observe", limit)),
            Ok(Err(error)) => findings.push(Finding::new(Level::Error, "database", error.to_string())),
        }
    }
    findings.extend(intake::findings(&config));
    if config.relays.is_empty() && config.intake.is_none() {
        let message = "no relay is configured: `run` refuses to start";
        findings.push(Finding::new(Level::Warn, "no_relay", message).setting("Add a section [[relay]], or [intake]."));
    }
    // Each relay's together; the server's stay first.
    findings.sort_by_key(|finding| config.relays.iter().position(|relay| relay.relay == finding.relay));
    let ok = findings.iter().all(|finding| finding.level < Level::Error);
    let text = match args.output {
        Format::Json => format!("{}\n", serde_json::json!({ "ok": ok, "findings": findings })),
        Format::Table => render(&findings),
    };
    print(&text)?;
    Ok(if ok { ExitCode::SUCCESS } else { ExitCode::from(super::THRESHOLD) })
}

/// The limit was reached while this was asked: what was found until then is told all the same.
fn late(step: &str, limit: Option<Duration>) -> Finding {
    let limit = limit.unwrap_or_default();
    let message = format!("no answer within {limit:?} (--timeout) from {step}: what comes after it was not checked");
    Finding::new(Level::Error, "no_answer", message)
        .setting("Find out why it does not answer, or give a longer --timeout.")
}

/// The findings relay by relay; a mend stands below its finding.
fn render(findings: &[Finding]) -> String {
    let mut text = String::new();
    let mut relay = None;
    for finding in findings {
        if relay != Some(&finding.relay) {
            relay = Some(&finding.relay);
            let title = if finding.relay.is_empty() { "server" } else { finding.relay.as_str() };
            text.push_str(&format!("{title}\n"));
        }
        let level = match finding.level {
            Level::Ok => "ok",
            Level::Warn => "warn",
            Level::Error => "ERROR",
        };
        text.push_str(&format!("  {level:<5}  {:<24} {}\n", finding.code, visible(&finding.message)));
        for mend in finding.fix_sql.iter().chain(&finding.fix_setting) {
            for line in mend.trim_end().lines() {
                text.push_str(&format!("           -> {}\n", visible(line)));
            }
        }
    }
    let errors = findings.iter().filter(|finding| finding.level == Level::Error).count();
    let warnings = findings.iter().filter(|finding| finding.level == Level::Warn).count();
    let counted = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    text.push_str(&format!("{}, {}\n", counted(errors, "error"), counted(warnings, "warning")));
    text
}
