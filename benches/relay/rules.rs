//! Next occurrences of recurrence rules: what a replica computes for each schedule that was due, reading the rule included.

use std::time::{Duration, Instant};

use outbox_relay::position::Timestamp;
use outbox_relay::schedule::{Recurrence, When};
use serde_json::json;

use super::figure::{median, rounded, runs};
use super::report::Report;

/// Common rules, each with its zone.
const MIX: [(&str, &str); 6] = [
    ("FREQ=MINUTELY;INTERVAL=10", "UTC"),
    ("FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0", "Europe/Berlin"),
    ("FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=8;BYMINUTE=30;BYSECOND=0", "America/New_York"),
    ("FREQ=MONTHLY;BYDAY=1MO;BYHOUR=9;BYMINUTE=0;BYSECOND=0", "Europe/Berlin"),
    ("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;BYHOUR=18;BYMINUTE=0;BYSECOND=0", "Australia/Lord_Howe"),
    ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29", "UTC"),
];

/// Computations a second, on one core; the schedules began in 2020 and the instants asked for go from 2026 on.
pub fn measure(computations: u64) -> anyhow::Result<f64> {
    let instant = |text: &str| Timestamp::parse_rfc3339(text);
    let (start, first) = (instant("2020-01-01T08:00:00Z")?, instant("2026-11-21T08:00:00Z")?);
    let begun = Instant::now();
    for number in 0..computations {
        let (rule, time_zone) = MIX[usize::try_from(number)? % MIX.len()];
        let when = When { rule: Some(rule), time_zone, starts_at: Some(start), ends_at: None, changed_at: start };
        let after = first.plus(Duration::from_secs(number * 61));
        let next = Recurrence::new(&when)?.next(after)?;
        anyhow::ensure!(next.is_some_and(|next| next > after), "{rule} has no next occurrence after {after}");
    }
    Ok(computations as f64 / begun.elapsed().as_secs_f64())
}

/// For people and programs.
pub fn tell(rates: &[f64], report: &mut Report) {
    report.line("rules, a mix of six", rates, "next occurrences/s", "");
    report.results.push(json!({"name": "rules", "rows_per_second": rounded(median(rates)), "runs": runs(rates)}));
}
