//! `outbox-relay schedule list`.

use std::process::ExitCode;

use super::{Format, ScheduleFilter, ScheduleSummary, print, timetable};
use crate::cli::output::complain;
use crate::cli::table::Table;
use crate::position::Timestamp;
use crate::relay::inspect::planned::{local, rfc3339, state, utc, when, words};
use crate::schedule::english;

/// Arguments of `schedule list`.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
#[command(after_help = "\
Examples:
  outbox-relay schedule list --relay reports
  outbox-relay schedule list --tenant tenant_a
      those of one tenant; --tenant '*' are those for each tenant
  outbox-relay schedule list --problems            those that cannot run, and why
  outbox-relay schedule list -o json | jq -r '.schedules[] | [.key[0], .name, .next_at] | @tsv'

NEXT is the next occurrence by the clocks of the schedule's zone, or else computing, paused, ended (never again) or problem. LAST \
is the status of the newest occurrence.")]
pub struct Args {
    /// Only of this relay
    #[arg(long, value_name = "NAME")]
    pub relay: Option<String>,
    /// Only this tenant's
    #[arg(long, value_name = "TENANT")]
    pub tenant: Option<String>,
    /// Only those that cannot run
    #[arg(long)]
    pub problems: bool,
    /// How many to list at most
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(i64).range(1..))]
    pub limit: i64,
    /// How to print them
    #[arg(short = 'o', long = "output", value_enum, default_value_t)]
    pub output: Format,
}

pub(super) async fn run(client: &tokio_postgres::Client, args: &Args) -> anyhow::Result<ExitCode> {
    let (relay, tenant) = (args.relay.as_deref(), args.tenant.as_deref());
    let filter =
        ScheduleFilter { relay, tenant, problems: args.problems, limit: args.limit, ..ScheduleFilter::default() };
    let found = timetable::list(client, filter).await?;
    print(&match args.output {
        Format::Json => {
            crate::cli::document::line(serde_json::json!({ "schedules": found.iter().map(json).collect::<Vec<_>>() }))
        }
        Format::Table => render(&found),
    })?;
    if i64::try_from(found.len()).is_ok_and(|listed| listed == args.limit) {
        let limit = args.limit;
        complain(format!("there may be more than these {limit}: choose by --relay and --tenant, or raise --limit"));
    }
    Ok(ExitCode::SUCCESS)
}

fn render(found: &[ScheduleSummary]) -> String {
    let mut table = Table::new(["ID", "NAME", "TENANT", "RELAY", "WHEN", "NEXT", "NEXT UTC", "LAST", "PROBLEM"]);
    for schedule in found {
        let dash = || "-".to_owned();
        let planned = schedule.next_at.filter(|_| state(schedule) == "planned");
        table.row([
            schedule.id.to_string(),
            schedule.name.clone(),
            Some(&schedule.tenant).filter(|tenant| !tenant.is_empty()).cloned().unwrap_or_else(dash),
            schedule.relay.clone(),
            words(schedule),
            planned.and_then(|at| local(at, &schedule.time_zone)).unwrap_or_else(|| state(schedule).to_owned()),
            planned.map_or_else(dash, utc),
            last(schedule).map_or_else(dash, |(at, outcome)| format!("{} {}", counts(&outcome), utc(at))),
            schedule.problem.clone().unwrap_or_else(dash),
        ]);
    }
    table.render()
}

/// The newest occurrence that was made, and how many of its actions have which status.
fn last(schedule: &ScheduleSummary) -> Option<(Timestamp, serde_json::Value)> {
    let (at, outcome) = schedule.last.as_ref()?;
    Some((*at, serde_json::from_str(outcome).ok()?))
}

/// "completed", or of several tenants "completed 12, failed 1".
fn counts(outcome: &serde_json::Value) -> String {
    let Some(counts) = outcome.as_object() else { return "-".to_owned() };
    if counts.len() == 1 && counts.values().all(|count| count == 1) {
        return counts.keys().cloned().collect();
    }
    counts.iter().map(|(status, count)| format!("{status} {count}")).collect::<Vec<_>>().join(", ")
}

/// A schedule as both `list` and `show` print it.
pub(super) fn json(schedule: &ScheduleSummary) -> serde_json::Value {
    let finite = |at: Option<Timestamp>| at.filter(|at| at.is_finite());
    let text = |at: Option<Timestamp>| finite(at).map(|at| at.to_string());
    let next = finite(schedule.next_at).filter(|_| state(schedule) == "planned");
    serde_json::json!({
        "key": [schedule.id.to_string()],
        "name": schedule.name,
        "tenant": schedule.tenant,
        "relay": schedule.relay,
        "rule": schedule.rule,
        "time_zone": schedule.time_zone,
        "english": english(&when(schedule)),
        "state": state(schedule),
        "enabled": schedule.enabled,
        "next_at": text(next),
        "next_local": next.and_then(|at| rfc3339(at, &schedule.time_zone)),
        "last_at": text(schedule.last_at),
        "last": last(schedule).map(|(at, actions)| serde_json::json!({ "planned_at": at.to_string(), "actions": actions })),
        "problem": schedule.problem,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hostile() -> ScheduleSummary {
        ScheduleSummary {
            id: 7,
            name: "\u{1b}[31m\nforged".to_owned(),
            tenant: "*".to_owned(),
            relay: "r".to_owned(),
            rule: Some("FREQ=DAILY;BYHOUR=9".to_owned()),
            time_zone: "Europe/Berlin".to_owned(),
            starts_at: None,
            ends_at: None,
            changed_at: Timestamp::from_pg_micros(0),
            enabled: true,
            next_at: Some(Timestamp::parse_rfc3339("2026-11-23T08:00:00Z").expect("valid")),
            last_at: None,
            problem: None,
            last: Some((Timestamp::from_pg_micros(1), r#"{"failed": 1, "completed": 12}"#.to_owned())),
            columns: "{}".to_owned(),
        }
    }

    #[test]
    fn a_schedule_is_told_in_english_in_its_zone_and_in_utc_and_forges_no_line() {
        let text = render(&[hostile()]);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
        for part in
            ["every day at 09:00", "Mon 2026-11-23 09:00:00 CET", "2026-11-23T08:00:00Z", "completed 12, failed 1"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn what_is_not_planned_says_why_in_one_word() {
        let of = |change: fn(&mut ScheduleSummary)| {
            let mut schedule = hostile();
            change(&mut schedule);
            let document = json(&schedule);
            assert_eq!(
                (&document["next_at"], &document["next_local"]),
                (&serde_json::Value::Null, &serde_json::Value::Null)
            );
            document["state"].as_str().expect("a word").to_owned()
        };
        assert_eq!(of(|schedule| schedule.next_at = None), "computing");
        assert_eq!(of(|schedule| schedule.next_at = Some(Timestamp::INFINITY)), "ended");
        assert_eq!(of(|schedule| schedule.enabled = false), "paused");
        assert_eq!(of(|schedule| schedule.problem = Some("rule: no".to_owned())), "problem");
        assert_eq!(json(&hostile())["key"], serde_json::json!(["7"]));
    }
}
