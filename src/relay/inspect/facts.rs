//! What can be known of a cursor from outside. Pure data.

use crate::cursor::open_work::OpenWork;
use crate::relay::inspect::clock_step::ClockStepStatus;

/// What is known of a cursor.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CursorFacts {
    /// Its name.
    pub name: String,
    /// Its relay's.
    pub relay: String,
    /// It has a row.
    pub exists: bool,
    /// It has none because its relay may have been renamed: what speaks for it, and the commands that decide it.
    pub renamed: Option<(String, String)>,
    /// An operator has paused it: since when, and who.
    pub paused: Option<(String, String)>,
    /// It is halted.
    pub halted: bool,
    /// By a check: the halt ends when the check passes.
    pub by_check: bool,
    /// Its last error.
    pub error: Option<LastError>,
    /// Since when its sink's circuit has been open.
    pub circuit_opened_at: Option<String>,
    /// The replicas that are connected.
    pub replicas: Vec<String>,
    /// None of them has its relay; false where that is not known of one.
    pub absent: bool,
    /// Then what waits for one.
    pub open_work: Option<OpenWork>,
    /// The clock has stepped back: it goes on when the clock has passed this.
    pub regressed_until: Option<String>,
    /// The clock stepped back, and no operator has moved the cursor since: rows stamped between these two instants may not
    /// have been delivered.
    pub clock_step: Option<ClockStepStatus>,
    /// Where the live replicas do not agree on its relay, or refuse it: a sentence each.
    pub notes: Vec<String>,
    /// What waits for it; none when its table cannot be read here.
    pub waiting: Option<Waiting>,
    /// Rows that no turn reads now, whatever the horizon.
    pub out_of_reach: OutOfReach,
    /// All that waits lies above the horizon.
    pub held: bool,
    /// The number of an operator's change that waits for a turn.
    pub change: Option<i64>,
    /// What it is, in words.
    pub requested: Option<String>,
    /// How many rows are listed as unknown.
    pub unknown: i64,
    /// The keys of the newest of them.
    pub unknown_keys: Vec<Vec<String>>,
    /// How many rows came late, as far back as that is kept.
    pub late_rows: i64,
    /// How many dead letters wait, or failed requests of a relay of requests.
    pub dead_letters: i64,
    /// Keys that are parked.
    pub parked_keys: i64,
    /// Its relay is one of requests.
    pub of_requests: bool,
    /// Its relay is one of due work, row by row.
    pub due_work: bool,
    /// Its rows are sent in lanes.
    pub has_lanes: bool,
    /// Rows of due work that wait after a failure.
    pub retrying: Option<Retrying>,
    /// Of a relay of schedules: how its schedules and actions stand.
    pub schedules: Option<Schedules>,
    /// Who holds the horizon back, oldest first.
    pub holders: Vec<Holder>,
    /// Who had its lock all the while.
    pub lock: Option<Lock>,
    /// The prepared transaction that has it: nothing but its end gives the lock back.
    pub prepared_lock: Option<String>,
    /// It advanced while it was looked at.
    pub moved: bool,
    /// Rows a second while it was looked at; none when it advanced by too few rows for a rate.
    pub rate: Option<f64>,
    /// Seconds since it last advanced, when it ever did.
    pub rested: Option<f64>,
}

/// An error as the relay wrote it down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastError {
    /// `retry`, `poison` or `fatal`.
    pub class: String,
    /// A stable word.
    pub code: String,
    /// What happened.
    pub message: String,
    /// What to do.
    pub hint: String,
    /// When.
    pub at: String,
    /// When the first of the errors in a row was reported, nothing having succeeded since.
    pub since: Option<String>,
    /// The message concerned.
    pub message_id: Option<String>,
}

/// Rows that wait.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Waiting {
    /// Age of the oldest.
    pub lag_seconds: f64,
    /// How many.
    pub rows: i64,
    /// There may be more.
    pub capped: bool,
}

/// Rows of a stream whose `created_at` keeps them from being read now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutOfReach {
    /// How many have a finite `created_at` after now.
    pub ahead: Counted,
    /// The nearest of their instants.
    pub nearest: Option<String>,
    /// How many have `created_at` infinity.
    pub never: Counted,
    /// How many have `created_at` -infinity below a position: only those from before the first turn were delivered.
    pub below: Counted,
}

impl OutOfReach {
    /// Each kind of which there are rows, as the end of a sentence.
    pub fn named(&self) -> impl Iterator<Item = String> {
        let some = |counted: Counted, what: &dyn Fn(&str, &str) -> String| {
            let more = if counted.capped { "+" } else { "" };
            let (rows, have, are) = if counted.rows == 1 { ("row", "has", "is") } else { ("rows", "have", "are") };
            (counted.rows > 0).then(|| format!("{}{more} {rows} {}", counted.rows, what(have, are)))
        };
        let nearest = self.nearest.as_deref().unwrap_or("an unknown time");
        [
            some(self.ahead, &|have, are| {
                format!("{have} a created_at after now, the nearest at {nearest}, and {are} delivered when that time comes")
            }),
            some(self.never, &|have, are| format!("{have} created_at infinity and {are} never delivered")),
            some(self.below, &|have, are| {
                format!("{have} created_at -infinity, below the position, and {are} not delivered if committed after the first turn")
            }),
        ]
        .into_iter()
        .flatten()
    }
}

/// A number of rows, counted up to a cap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// How many were counted.
    pub rows: i64,
    /// There may be more.
    pub capped: bool,
}

/// Rows of due work that wait after a failure, each for itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Retrying {
    /// How many.
    pub rows: i64,
    /// When the first of them is retried, in seconds.
    pub next_in: f64,
    /// The code of its failure.
    pub code: String,
}

/// How the schedules of a relay stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedules {
    /// How many actions are running, on any replica.
    pub running: i64,
    /// How many are due and not begun, counted up to a cap.
    pub due: i64,
    /// How many schedules cannot run.
    pub problems: i64,
    /// When the first schedule is next due; none when none ever is.
    pub next_at: Option<String>,
    /// That instant has passed: no replica has planned what is due.
    pub overdue: bool,
}

/// Somebody who holds the horizon back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Holder {
    /// The server process; none for a prepared transaction.
    pub pid: Option<i32>,
    /// What the session calls itself.
    pub application: Option<String>,
    /// How long its transaction has been open, where that can be read.
    pub age_seconds: Option<f64>,
    /// The name of a prepared transaction.
    pub gid: Option<String>,
    /// It is no transaction: a standby that has not confirmed rows, or, without a process, one that is not there.
    pub standby: bool,
}

/// Somebody who has the cursor's lock.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lock {
    /// The replica, or what the session calls itself.
    pub by: String,
    /// Its server process.
    pub pid: i32,
    /// How long its transaction has been open, where that can be read.
    pub age_seconds: Option<f64>,
    /// Its commit waits for a synchronous standby of the server.
    pub waits_for_standby: bool,
}
