//! `outbox-relay check`: can every relay do its work?

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::deadline::within;
use super::format::Format;
use super::output::{complain, print};
use super::table::visible;
use super::{admin, collector, intake};
use crate::config::{Config, parse_duration};
use crate::relay::inspect::check::{CheckResults, check};
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

Exit codes: 0 no error, but perhaps warnings; 3 an error, also that a server cannot be asked; 2 usage or configuration. As an init \
container it stops a rollout that needs a decision: another table or topic under a cursor's name, a renamed relay. A halted cursor \
is a warning, so that a pod with the same configuration comes back, and one with the configuration that ends the halt starts.")]
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
    let mut found = CheckResults::default();
    let asking = async {
        check(&sessions, cluster.as_ref(), &config.relays, &mut found).await;
        Ok(())
    };
    let in_time = within(limit, asking).await;
    let CheckResults { mut findings, asked } = found;
    findings.extend(in_time.err().map(|_| late(&asked, limit)));
    let reachable = findings.iter().all(|finding| !finding.relay.is_empty() || finding.level < Level::Error);
    if let Some(time) = args.observe.filter(|_| reachable) {
        let left = limit.map(|limit| limit.saturating_sub(begun.elapsed()));
        let watcher = super::watcher(&config, "check");
        let observing = async { Ok(observe((&sessions, watcher), &config.relays, time, complain).await) };
        match within(left, observing).await {
            Ok(Ok(observed)) => findings.extend(observed),
            Err(_) => findings.push(late(&[("PostgreSQL, to observe".to_owned(), begun)], limit)),
            Ok(Err(error)) => findings.push(Finding::database(&error)),
        }
    }
    findings.extend(admin::findings(&config.admin));
    findings.extend(intake::findings(&config));
    let left = limit.map(|limit| limit.saturating_sub(begun.elapsed()));
    findings.extend(collector::findings(config.telemetry.as_ref(), left).await);
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

/// Below this, a server's part of the time is not worth a word.
const NOTABLE: Duration = Duration::from_millis(500);

/// The limit was reached while the last of them was asked: what was found until then is told all the same, and which servers
/// took the time, because they are asked one after another.
fn late(asked: &[(String, Instant)], limit: Option<Duration>) -> Finding {
    let limit = limit.unwrap_or_default();
    let ends = asked.iter().skip(1).map(|(_, begun)| *begun).chain([Instant::now()]);
    let mut times: Vec<(&str, Duration)> = Vec::new();
    for ((whom, begun), end) in asked.iter().zip(ends) {
        let (server, took) = (server(whom), end.saturating_duration_since(*begun));
        match times.iter_mut().find(|(other, _)| *other == server) {
            Some((_, sum)) => *sum += took,
            None => times.push((server, took)),
        }
    }
    let last = asked.last().map_or("PostgreSQL", |(whom, _)| whom.as_str());
    let all: Duration = times.iter().map(|(_, took)| *took).sum();
    let own = times.iter().find(|(whom, _)| *whom == server(last)).map_or(all, |(_, took)| *took);
    let others = times.iter().filter(|(whom, took)| *whom != server(last) && *took >= NOTABLE);
    let others: Vec<_> = others.map(|(whom, took)| format!("{whom} took {:.1} s", took.as_secs_f64())).collect();
    let before = if others.is_empty() { String::new() } else { format!("; before it, {}", others.join(", ")) };
    let (who, fix) = if own * 2 >= all {
        (
            format!("no answer within {limit:?} (--timeout) from {last}"),
            "Find out why it does not answer, or give a longer --timeout.",
        )
    } else {
        (
            format!("no answer from {last} in the {:.1} s that were left of {limit:?} (--timeout)", own.as_secs_f64()),
            "Give a longer --timeout: servers are asked one after another. Find out why those before it were slow.",
        )
    };
    Finding::new(Level::Error, "no_answer", format!("{who}: what comes after it was not checked{before}")).setting(fix)
}

/// The server of a question: PostgreSQL is asked about the relays one by one.
fn server(whom: &str) -> &str {
    whom.split_once(", ").map_or(whom, |(server, _)| server)
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
    fn late_finding_says_where_all_of_the_time_went() {
        let (limit, now) = (Duration::from_secs(15), Instant::now());
        let ago = |seconds| now.checked_sub(Duration::from_secs(seconds)).expect("a machine that runs for a minute");
        let asked = |whom: &str, seconds| (whom.to_owned(), ago(seconds));
        // The questions to PostgreSQL are several, and one after another.
        let all = [
            asked("PostgreSQL", 15),
            asked("PostgreSQL, about relay a", 13),
            asked("PostgreSQL, about relay b", 9),
            asked("the target of relay a", 5),
            asked("the target of relay b", 1),
        ];
        let told = late(&all, Some(limit));
        assert_eq!(
            told.message,
            "no answer from the target of relay b in the 1.0 s that were left of 15s (--timeout): what comes after it was not \
             checked; before it, PostgreSQL took 10.0 s, the target of relay a took 4.0 s"
        );
        assert!(told.fix_setting.as_ref().is_some_and(|fix| fix.contains("one after another")), "{told:?}");
        let silent = late(&all[..1], Some(limit)).message;
        assert_eq!(silent, "no answer within 15s (--timeout) from PostgreSQL: what comes after it was not checked");
        let slow = late(&all[..3], Some(limit)).message;
        let of_it =
            "no answer within 15s (--timeout) from PostgreSQL, about relay b: what comes after it was not checked";
        assert_eq!(slow, of_it, "it is one server");
    }
}
