//! What stands in the document of `status`, in words for people.

use std::fmt;
use std::time::Duration;

use super::{CursorStatus, HeldStatus, HorizonStatus, RunningAction, Status};
use crate::relay::engine::replicas::Fleet;
use crate::source::certainty::Certainty;

/// Below this many seconds, a horizon that is held back is the usual work of short transactions.
const NOTABLE: f64 = 1.0;

/// A time in one unit, for example `0.4 s`, `45 s`, `12 min`, `7 h`, `69 d`.
#[must_use]
pub fn in_one_unit(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", time.as_secs_f64()),
        10..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

impl Status {
    /// Where replicas share an id, do not agree, or refuse one of these cursors: a sentence each.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = Vec::new();
        for note in self.cursors.iter().flat_map(|cursor| cursor.notes(&self.fleet)) {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        notes
    }
}

impl CursorStatus {
    /// What is to be known of the replicas that have it: a refusal that its last error tells is not told again. And which transactions
    /// are not waited for.
    #[must_use]
    pub fn notes(&self, fleet: &Fleet) -> Vec<String> {
        let told = self.of_error("code").zip(self.of_error("message"));
        let mut notes =
            fleet.notes_beside(&self.name, told.as_ref().map(|(code, message)| (code.as_str(), message.as_str())));
        notes.extend(self.horizon.iter().flat_map(|horizon| &horizon.passed_over).map(HeldStatus::passed_over_note));
        notes
    }

    /// The last error in a line, for people.
    #[must_use]
    pub fn error_line(&self) -> Option<String> {
        let part = |key: &str| self.of_error(key).unwrap_or_default();
        self.last_error.as_ref()?;
        Some(format!("{} {}: {}", part("class"), part("code"), part("message")))
    }

    /// When the first of the errors in a row was reported.
    #[must_use]
    pub fn error_since(&self) -> Option<String> {
        self.of_error("since")
    }

    /// When the last error occurred.
    #[must_use]
    pub fn error_at(&self) -> Option<String> {
        self.of_error("at")
    }

    /// A member of the last error.
    fn of_error(&self, key: &str) -> Option<String> {
        let error: serde_json::Value = serde_json::from_str(self.last_error.as_ref()?.get()).ok()?;
        Some(error.get(key)?.as_str()?.to_owned())
    }
}

impl fmt::Display for RunningAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "running: {}", self.schedule)?;
        if !self.tenant.is_empty() {
            write!(f, " (tenant {})", self.tenant)?;
        }
        write!(f, " for {:.0} s of {:.0} s", self.running_seconds, self.timeout_seconds)?;
        match &self.progress {
            Some(progress) => write!(f, ": {progress}"),
            None => Ok(()),
        }
    }
}

impl HorizonStatus {
    /// Whether no row can appear below it whose `created_at` is the column's default.
    #[must_use]
    pub fn is_proven_for_default(&self) -> bool {
        self.certainty >= Certainty::ProvenForDefault
    }
}

impl HorizonStatus {
    /// In a line, for people; `lag` is the age of the oldest row that waits.
    #[must_use]
    pub fn line(&self, lag: Option<f64>) -> String {
        let behind = match (self.held_seconds, lag.filter(|lag| *lag > 0.0)) {
            (Some(held), _) => format!("{held:.1} s behind"),
            (None, Some(lag)) => format!("at least {lag:.1} s behind"),
            (None, None) => "how far behind is not known".to_owned(),
        };
        let by = match self.held_by.first().map(|first| (first.reason, first.pid, first.application.as_deref())) {
            Some(("no_standby", ..)) => ", waiting for a standby that is not connected".to_owned(),
            Some(("standby", _, application)) => {
                format!(", waiting for standby {}", application.unwrap_or("without a name"))
            }
            Some((_, Some(pid), _)) => format!(", held by pid {pid}"),
            Some((_, None, _)) => ", held by a prepared transaction".to_owned(),
            None => String::new(),
        };
        format!("{} ({}), {behind}{by}", self.rule, self.certainty.as_str())
    }

    /// Whether the line is shown beside a cursor of this state: short transactions hold every horizon back a little.
    #[must_use]
    pub fn is_notable(&self, state: &str) -> bool {
        state == "held" || self.held_seconds.is_some_and(|held| held >= NOTABLE) || !self.is_proven_for_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relay::inspect::status::HeldStatus;

    fn horizon(held_seconds: Option<f64>) -> HorizonStatus {
        let holder = HeldStatus {
            pid: Some(7),
            application: None,
            age_seconds: None,
            reason: "unknown_start",
            transaction: "1/1".to_owned(),
        };
        HorizonStatus::of("writers", Certainty::Proven, held_seconds, vec![holder])
    }

    #[test]
    fn durations_have_one_unit() {
        let of = |seconds| in_one_unit(Duration::from_secs_f64(seconds));
        assert_eq!(of(0.04), "0.0 s");
        assert_eq!(of(9.96), "10.0 s");
        assert_eq!(of(45.9), "45 s");
        assert_eq!(of(720.0), "12 min");
        assert_eq!(of(26_000.0), "7 h");
        assert_eq!(of(69.2 * 86_400.0), "69 d");
    }

    #[test]
    fn horizon_of_short_transactions_is_no_note_and_unknown_age_is_told_by_the_oldest_row() {
        let unknown = horizon(None);
        assert!(!unknown.is_notable("running") && !unknown.is_notable("idle") && unknown.is_notable("held"));
        assert!(horizon(Some(1.2)).is_notable("running") && !horizon(Some(0.02)).is_notable("running"));
        assert_eq!(unknown.line(Some(112.3)), "writers (proven), at least 112.3 s behind, held by pid 7");
        assert_eq!(unknown.line(Some(0.0)), "writers (proven), how far behind is not known, held by pid 7");
        assert_eq!(horizon(Some(3.0)).line(None), "writers (proven), 3.0 s behind, held by pid 7");
    }
}
