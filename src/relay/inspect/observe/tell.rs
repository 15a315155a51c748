//! What follows from what was seen, as findings. Pure.

use std::time::Duration;

use super::observed;
use super::seen::{Hold, Seen};
use crate::source::finding::{Finding, Level};
use crate::source::shape::Shape;

/// Writers and snapshots that are open longer than this deserve a warning.
const LONG: Duration = Duration::from_secs(10);
const OLD: f64 = 60.0;
/// A newest row further ahead of the clock than this was not stamped by it.
const AHEAD: Duration = Duration::from_secs(1);

/// Of one table.
pub(super) fn findings(shape: &Shape, seen: &Seen, time: Duration) -> Vec<Finding> {
    let mut findings = vec![holds(shape, seen), explicit(shape, seen)];
    if seen.ahead > AHEAD {
        let message = format!(
            "the newest row of {} is {} ahead of PostgreSQL's clock: it is delivered only then",
            shape.config.table,
            millis(seen.ahead)
        );
        let fix = "Let the database set created_at, or correct the row.";
        findings.push(observed(Level::Warn, "observed_created_at_ahead", message).setting(fix));
    }
    let rate = seen.grown as f64 / time.as_secs_f64().max(0.001);
    let growth = format!("{} grew by {} rows, {rate:.1} a second", shape.config.table, seen.grown);
    findings.push(observed(Level::Ok, "observed_growth", growth));
    findings.push(lag(shape, seen));
    findings
}

fn holds(shape: &Shape, seen: &Seen) -> Finding {
    let table = &shape.config.table;
    let Some((median, longest)) = seen.holds() else {
        let message = format!("no transaction held {table} back in {} polls", seen.looks);
        return observed(Level::Ok, "observed_holds", message);
    };
    let message = format!(
        "{} transactions were seen to hold {table} back in {} looks: {} at the median, {} at most ({}); shorter ones \
         than the time between two looks are missed",
        seen.writers(),
        seen.looks,
        millis(median),
        millis(longest.time()),
        who(longest)
    );
    if longest.time() < LONG {
        return observed(Level::Ok, "observed_holds", message);
    }
    let fix = "Shorter transactions there; or idle_in_transaction_session_timeout for the application's role.";
    observed(Level::Warn, "observed_holds", message).setting(fix)
}

fn who(hold: &Hold) -> String {
    let application = hold.application.as_deref().filter(|text| !text.is_empty()).unwrap_or("no application name");
    hold.pid.map_or_else(|| "a prepared transaction".to_owned(), |pid| format!("pid {pid}, {application}"))
}

fn explicit(shape: &Shape, seen: &Seen) -> Finding {
    let (table, column) = (&shape.config.table, &shape.config.created_at);
    if seen.late == 0 {
        let message = format!("no row of {table} came below what was safe to read");
        return observed(Level::Ok, "observed_created_at", message);
    }
    let message = format!(
        "{} rows of {table} came with a {column} below what was safe to read: a writer sends {column}, and a relay would \
         lose these rows",
        seen.late
    );
    let fix = "Do not send the column; the SQL below created_at_unproven takes care of it.";
    observed(Level::Error, "observed_created_at", message).setting(fix)
}

/// How far the horizon was behind the clock is the lag that no relay can get below.
fn lag(shape: &Shape, seen: &Seen) -> Finding {
    let window = shape.margin.window;
    let said = |lag: Option<Duration>| lag.map_or_else(|| "not known".to_owned(), millis);
    let [median, most] = seen.behind();
    let message = format!(
        "achievable lag of {}: {} at the median, {} at most, of which latency_window is {}; publishing comes on top",
        shape.config.table,
        said(median),
        said(most),
        millis(window)
    );
    if seen.stepped_back > window {
        let fix = format!("latency_window = \"{}ms\"", (seen.stepped_back * 2).as_millis());
        let message = format!("{message}; the clock stepped back by {}", millis(seen.stepped_back));
        return observed(Level::Warn, "observed_lag", message).setting(fix);
    }
    observed(Level::Ok, "observed_lag", format!("{message}; no step of the clock asks for a longer window"))
}

/// The oldest snapshot that can be seen: pid, application, seconds, transactions.
pub(super) fn snapshot(oldest: Option<(i32, String, Option<f64>, i32)>, all: bool) -> Finding {
    let code = "observed_snapshot";
    let blind = if all { "" } else { " (other roles' are not visible: grant pg_read_all_stats)" };
    let Some((pid, application, seconds, transactions)) = oldest else {
        return observed(Level::Ok, code, format!("no other snapshot is open{blind}"));
    };
    let age = seconds.map_or_else(|| "of unknown age".to_owned(), |seconds| format!("{seconds:.0} s old"));
    let message =
        format!("the oldest snapshot is {age}, {transactions} transactions back: pid {pid} ({application}){blind}");
    if seconds.is_some_and(|seconds| seconds > OLD) {
        let fix = "Under an old snapshot dead versions of the cursors' rows pile up, and turns get slower: end it.";
        return observed(Level::Warn, code, message).setting(fix);
    }
    observed(Level::Ok, code, message)
}

fn millis(time: Duration) -> String {
    if time >= Duration::from_secs(1) {
        format!("{:.1} s", time.as_secs_f64())
    } else {
        format!("{:.1} ms", time.as_secs_f64() * 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_snapshot_is_a_warning_and_what_cannot_be_seen_is_said() {
        let finding = snapshot(Some((7, "pg_dump".to_owned(), Some(93.0), 1_000)), true);
        assert_eq!(finding.level, Level::Warn);
        assert_eq!(finding.message, "the oldest snapshot is 93 s old, 1000 transactions back: pid 7 (pg_dump)");
        let blind = snapshot(None, false);
        assert_eq!(blind.level, Level::Ok);
        assert!(blind.message.contains("grant pg_read_all_stats"), "{}", blind.message);
    }

    #[test]
    fn times_are_told_in_the_unit_that_fits() {
        assert_eq!(millis(Duration::from_micros(12_345)), "12.3 ms");
        assert_eq!(millis(Duration::from_millis(1_950)), "1.9 s");
    }
}
