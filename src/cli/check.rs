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
    let Found { mut findings, asked } = found;
    findings.extend(in_time.err().map(|_| late(&asked, limit)));
    let reachable = findings.iter().all(|finding| !finding.relay.is_empty() || finding.level < Level::Error);
    if let Some(time) = args.observe.filter(|_| reachable) {
        let left = limit.map(|limit| limit.saturating_sub(begun.elapsed()));
        let watcher = super::watcher(&config, "check");
        let observing = async { Ok(observe((&sessions, watcher), &config.relays, time, complain).await) };
        match within(left, observing).await {
            Ok(Ok(observed)) => findings.extend(observed),
            Err(_) => findings.push(late(&[("PostgreSQL, to observe".to_owned(), begun)], limit)),
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

/// The limit was reached while the last of them was asked: what was found until then is told all the same, and who took the
/// most of the time, if that was another.
fn late(asked: &[(String, Instant)], limit: Option<Duration>) -> Finding {
    let limit = limit.unwrap_or_default();
    let ends = asked.iter().skip(1).map(|(_, begun)| *begun).chain([Instant::now()]);
    let times =
        asked.iter().zip(ends).map(|((whom, begun), end)| (whom.as_str(), end.saturating_duration_since(*begun)));
    let last = asked.last().map_or("PostgreSQL", |(whom, _)| whom.as_str());
    let longest = times.max_by_key(|(_, time)| *time).filter(|(whom, _)| *whom != last);
    let most =
        longest.map_or_else(String::new, |(whom, time)| format!("; {whom} took {:.1} s of it", time.as_secs_f64()));
    let message =
        format!("no answer within {limit:?} (--timeout) from {last}: what comes after it was not checked{most}");
    Finding::new(Level::Error, "no_answer", message)
        .setting("Find out why it does not answer, or give a longer --timeout.")
}

/// The findings relay by relay; a fix stands below its finding.
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
        for fix in finding.fix_sql.iter().chain(&finding.fix_setting) {
            for line in fix.trim_end().lines() {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_took_the_most_of_the_time_is_named() {
        let (limit, now) = (Duration::from_secs(15), Instant::now());
        let ago = |seconds| now.checked_sub(Duration::from_secs(seconds)).expect("a machine that runs for a minute");
        let asked = |whom: &str, seconds| (whom.to_owned(), ago(seconds));
        let both = [asked("PostgreSQL", 15), asked("the target of relay a", 14), asked("the target of relay b", 1)];
        let told = late(&both, Some(limit)).message;
        let named = "no answer within 15s (--timeout) from the target of relay b: what comes after it was not checked; \
                     the target of relay a took 13.0 s of it";
        assert_eq!(told, named);
        assert!(!late(&both[..2], Some(limit)).message.contains("took"));
    }
}
