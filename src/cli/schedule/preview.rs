//! `outbox-relay schedule preview`: what a rule means, in words and dates, before anybody relies on it.

use std::process::ExitCode;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use chrono_tz::Tz;

use crate::cli::format::Format;
use crate::cli::output::print;
use crate::cli::table::{Table, visible};
use crate::position::Timestamp;
use crate::schedule::{Occurrence, Recurrence, Wall, When, english};

/// Arguments of `schedule preview`. It needs neither a configuration nor a database.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
#[command(after_help = "\
Examples:
  outbox-relay schedule preview \"FREQ=MONTHLY;BYDAY=1MO;BYHOUR=9\" --zone Europe/Berlin
      every first Monday at 09:00
  outbox-relay schedule preview \"FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=8;BYMINUTE=30\"
      on weekdays at 08:30
  outbox-relay schedule preview \"FREQ=MONTHLY;BYMONTHDAY=-1;BYHOUR=18\"
      on the last day of every month
  outbox-relay schedule preview \"FREQ=MINUTELY;INTERVAL=10\" --start 2026-11-21T08:00:00Z
      every 10 minutes, from there on
  outbox-relay schedule preview \"FREQ=DAILY;BYHOUR=2\" --zone CET --start 2026-03-28T00:00:00Z
      02:00 on the night in which it does not exist
  outbox-relay schedule preview \"FREQ=YEARLY\" --count 20 -o json | jq -r '.occurrences[].utc'

Rules are those of RFC 5545. Times of the day are local times of the zone; a rule by hours, minutes or seconds counts in UTC. \
Without BYHOUR or --start the time of the day is the present one.

Exit codes: 0 done; 2 the rule cannot be planned, with the reason.")]
pub struct Args {
    /// The rule, for example FREQ=DAILY;BYHOUR=9; in quotes, because a shell ends a command at a semicolon
    pub rule: String,
    /// The time zone, by its IANA name
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    pub zone: String,
    /// Begin here (RFC 3339) instead of now: what starts_at is to a schedule
    #[arg(long, value_name = "INSTANT", value_parser = instant)]
    pub start: Option<Timestamp>,
    /// How many occurrences
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub count: u16,
    /// How to print them
    #[arg(short = 'o', long = "output", value_enum, default_value_t)]
    pub output: Format,
}

fn instant(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse_rfc3339(text).map_err(|error| format!("{error}; write for example 2026-11-21T08:00:00Z"))
}

/// Prints what a rule means.
///
/// # Errors
/// When it cannot be planned, or standard output cannot be written.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let now = Timestamp::from_unix_micros(Utc::now().timestamp_micros());
    print(&told(args, now)?)?;
    Ok(ExitCode::SUCCESS)
}

/// What is printed of a rule that is written now.
fn told(args: &Args, now: Timestamp) -> anyhow::Result<String> {
    let changed_at = args.start.map_or(now, |start| start.minus(Duration::from_secs(1)));
    let when = When { rule: Some(&args.rule), time_zone: &args.zone, starts_at: args.start, ends_at: None, changed_at };
    let recurrence = Recurrence::new(&when)?;
    let zone: Tz = args.zone.parse().map_err(|error| anyhow::anyhow!("{error}"))?;
    let count = usize::from(args.count);
    let mut found = recurrence.following(changed_at, count + 1)?;
    let more = found.len() > count;
    found.truncate(count);
    let words = english(&when);
    Ok(match args.output {
        Format::Json => document(args, words, &found, zone, more),
        Format::Table => table(args, words, &found, zone, more),
    })
}

fn table(args: &Args, words: Option<String>, found: &[Occurrence], zone: Tz, more: bool) -> String {
    let words = words.unwrap_or_else(|| format!("{} (no plain words for this rule)", visible(&args.rule)));
    let mut text = format!("{words} ({zone})\n");
    if found.is_empty() {
        return text + "never occurs: it has ended before it begins\n";
    }
    let mut table = Table::new(["LOCAL", "ZONE", "UTC", "NOTE"]);
    for occurrence in found {
        let local = local(occurrence, zone);
        table.row([
            local.format("%a %Y-%m-%d %H:%M:%S %:z").to_string(),
            local.format("%Z").to_string(),
            utc(occurrence),
            note(occurrence, zone).unwrap_or_default(),
        ]);
    }
    text.push_str(&table.render());
    if !more {
        text.push_str("then never again\n");
    }
    text
}

fn document(args: &Args, words: Option<String>, found: &[Occurrence], zone: Tz, more: bool) -> String {
    let occurrences = found.iter().map(|occurrence| {
        let local = local(occurrence, zone);
        serde_json::json!({
            "local": local.to_rfc3339_opts(SecondsFormat::Secs, false),
            "zone": local.format("%Z").to_string(),
            "utc": utc(occurrence),
            "note": note(occurrence, zone),
        })
    });
    let document = serde_json::json!({
        "rule": args.rule,
        "time_zone": args.zone,
        "english": words,
        "occurrences": occurrences.collect::<Vec<_>>(),
        "more": more,
    });
    format!("{document}\n")
}

fn local(occurrence: &Occurrence, zone: Tz) -> DateTime<Tz> {
    DateTime::from_timestamp_micros(occurrence.at.unix_micros()).unwrap_or_default().with_timezone(&zone)
}

fn utc(occurrence: &Occurrence) -> String {
    local(occurrence, Tz::UTC).naive_utc().and_utc().to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// What the clocks did to the local time that the rule says.
fn note(occurrence: &Occurrence, zone: Tz) -> Option<String> {
    let shown = local(occurrence, zone);
    match occurrence.wall {
        Wall::Plain => None,
        Wall::Skipped(said) if said.date() == shown.date_naive() => {
            Some(format!("{} does not exist that day: {}", said.format("%H:%M"), shown.format("%H:%M")))
        }
        Wall::Skipped(said) => Some(format!("{} does not exist: the day after", said.format("%Y-%m-%d %H:%M"))),
        Wall::FirstOfTwo => Some(format!("{} happens twice that day: the first", shown.format("%H:%M"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(rule: &str, start: Option<&str>, count: u16, output: Format) -> Args {
        let zone = "Europe/Berlin".to_owned();
        Args { rule: rule.to_owned(), zone, start: start.map(|start| instant(start).expect(start)), count, output }
    }

    fn preview(rule: &str, start: Option<&str>, count: u16) -> String {
        told(&args(rule, start, count, Format::Table), instant("2026-11-21T10:11:12Z").expect("now")).expect(rule)
    }

    #[test]
    fn words_come_first_then_each_occurrence_in_local_time_and_utc() {
        let expected = "\
every first Monday at 09:00 (Europe/Berlin)
LOCAL                           ZONE  UTC                   NOTE
Mon 2026-12-07 09:00:00 +01:00  CET   2026-12-07T08:00:00Z
Mon 2027-01-04 09:00:00 +01:00  CET   2027-01-04T08:00:00Z
";
        assert_eq!(preview("FREQ=MONTHLY;BYDAY=1MO;BYHOUR=9", None, 2), expected);
        let other = preview("FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13;BYHOUR=9", None, 1);
        assert!(other.starts_with("FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13;BYHOUR=9 (no plain words"), "{other}");
    }

    #[test]
    fn what_the_clocks_moved_is_marked() {
        let gap = preview("FREQ=DAILY;BYHOUR=2;BYMINUTE=30;BYSECOND=0", Some("2026-03-28T12:00:00Z"), 2);
        assert!(
            gap.contains(
                "Sun 2026-03-29 03:30:00 +02:00  CEST  2026-03-29T01:30:00Z  02:30 does not exist that day: 03:30\n"
            ),
            "{gap}"
        );
        assert!(gap.contains("Mon 2026-03-30 02:30:00 +02:00  CEST  2026-03-30T00:30:00Z\n"), "{gap}");
        let fold = preview("FREQ=DAILY;BYHOUR=2;BYMINUTE=30;BYSECOND=0", Some("2026-10-24T12:00:00Z"), 1);
        assert!(fold.contains("2026-10-25T00:30:00Z  02:30 happens twice that day: the first\n"), "{fold}");
    }

    #[test]
    fn an_end_is_told() {
        let ended = preview("FREQ=DAILY;COUNT=2;BYHOUR=9", None, 5);
        assert!(ended.starts_with("every day at 09:00, 2 times") && ended.ends_with("then never again\n"), "{ended}");
        let past = preview("FREQ=DAILY;UNTIL=20200101", None, 5);
        assert!(past.ends_with("never occurs: it has ended before it begins\n"), "{past}");
    }

    #[test]
    fn a_rule_that_never_happens_ends_with_2_and_the_reason() {
        let args = args("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", None, 5, Format::Table);
        let error = run(&args).expect_err("30 February");
        assert!(error.to_string().contains("never occurs"), "{error}");
        assert_eq!(format!("{:?}", crate::cli::code_of(&error)), format!("{:?}", ExitCode::from(crate::cli::USAGE)));
    }

    #[test]
    fn the_document_has_words_and_each_occurrence() {
        let args = args("FREQ=DAILY;BYHOUR=9", None, 1, Format::Json);
        let text = told(&args, instant("2026-11-21T10:11:12Z").expect("now")).expect("a rule");
        let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let expected = serde_json::json!({
            "rule": "FREQ=DAILY;BYHOUR=9", "time_zone": "Europe/Berlin", "english": "every day at 09:00", "more": true,
            "occurrences": [{"local": "2026-11-22T09:00:00+01:00", "zone": "CET", "utc": "2026-11-22T08:00:00Z", "note": null}],
        });
        assert_eq!(document, expected);
    }
}
