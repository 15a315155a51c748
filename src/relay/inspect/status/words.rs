//! What stands in the document of `status`, in words for people.

use std::fmt;

use super::{CursorStatus, HorizonStatus, RunningAction, Status};
use crate::source::certainty::Certainty;

impl Status {
    /// Where replicas share an id, do not agree, or refuse one of these cursors: a sentence each.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = Vec::new();
        for note in self.cursors.iter().flat_map(|cursor| self.fleet.notes_of(&cursor.name)) {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        notes
    }
}

impl CursorStatus {
    /// The last error in a line, for people.
    #[must_use]
    pub fn error_line(&self) -> Option<String> {
        let part = |key: &str| self.of_error(key).unwrap_or_default();
        self.last_error.as_ref()?;
        Some(format!("{} {}: {}", part("class"), part("code"), part("message")))
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
    /// For how long open transactions have held it back, in seconds; none when that is not known.
    #[must_use]
    pub const fn held_for(&self) -> Option<f64> {
        self.held_seconds
    }

    /// Whether no row can appear below it whose `created_at` is the column's default.
    #[must_use]
    pub fn is_proven_for_default(&self) -> bool {
        self.certainty >= Certainty::ProvenForDefault
    }
}

impl fmt::Display for HorizonStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}), ", self.rule, self.certainty.as_str())?;
        match self.held_seconds {
            Some(held) => write!(f, "{held:.1} s behind")?,
            None => f.write_str("unknown")?,
        }
        match self.held_by.first().map(|first| first.pid) {
            Some(Some(pid)) => write!(f, ", held by pid {pid}"),
            Some(None) => f.write_str(", held by a prepared transaction"),
            None => Ok(()),
        }
    }
}
