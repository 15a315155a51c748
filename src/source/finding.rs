//! What a check found: pure data.

use serde::Serialize;

use crate::database::Error;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// As it should be.
    Ok,
    /// It works, but somebody should know.
    Warn,
    /// The relay must not run.
    Error,
}

/// One finding, with the SQL or the setting that fixes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The relay concerned; empty for the server.
    pub relay: String,
    /// A stable word.
    pub code: &'static str,
    /// How bad it is.
    pub level: Level,
    /// What was found.
    pub message: String,
    /// SQL that fixes it.
    pub fix_sql: Option<String>,
    /// A setting that fixes it.
    pub fix_setting: Option<String>,
}

impl Finding {
    /// A finding without a fix, about no relay yet.
    #[must_use]
    pub fn new(level: Level, code: &'static str, message: impl Into<String>) -> Self {
        Self { relay: String::new(), code, level, message: message.into(), fix_sql: None, fix_setting: None }
    }

    /// That PostgreSQL refused a query, with what to do about it; a hint to ask `check` is none here.
    #[must_use]
    pub fn database(error: &Error) -> Self {
        let finding = Self::new(Level::Error, "database", error.to_string());
        match error.fix() {
            fix if fix.contains("outbox-relay check") => finding,
            fix => finding.setting(fix),
        }
    }

    /// With the SQL that fixes it.
    #[must_use]
    pub fn sql(mut self, sql: impl Into<String>) -> Self {
        self.fix_sql = Some(sql.into());
        self
    }

    /// With the setting that fixes it.
    #[must_use]
    pub fn setting(mut self, setting: impl Into<String>) -> Self {
        self.fix_setting = Some(setting.into());
        self
    }
}
