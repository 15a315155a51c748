//! Why a template fails for a row, and what to do about it.

use std::time::Duration;

use minijinja::ErrorKind;

use super::work::{Exhausted, MADE};

/// Why a row cannot be printed: the row is poison. Says nothing of its values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unprintable {
    /// A NULL was printed.
    #[error("It prints NULL; NULL in this row: {}", .columns.join(", "))]
    Null {
        /// The template's columns that are NULL in this row.
        columns: Vec<String>,
    },
    /// More output than the limit.
    #[error("Its output is larger than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// JSON with more levels than the limit.
    #[error("JSON of {levels} levels; the limit is {limit}")]
    TooDeep {
        /// The most lists and objects inside each other.
        levels: usize,
        /// The limit.
        limit: usize,
    },
    /// More JSON than the limit.
    #[error("JSON of {bytes} bytes; the limit is {limit}")]
    JsonTooLarge {
        /// What the template reads of this row, up to where it stopped.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// More work than the limit.
    #[error("It takes more than {limit} steps")]
    TooLong {
        /// The limit.
        limit: u64,
    },
    /// More CPU time than the limit.
    #[error("It takes more than {limit:?} of CPU time")]
    TooSlow {
        /// The limit.
        limit: Duration,
    },
    /// Filters, operators and blocks make more than the limit.
    #[error("It makes texts or lists of more than {limit} bytes in total")]
    TooMuch {
        /// The limit.
        limit: usize,
    },
    /// A path segment would lead out of the path that the template describes.
    #[error("A path segment of the URL would be \".\" or \"..\"")]
    Traversal,
    /// A column's bytes are no UTF-8.
    #[error("Column {column} is no UTF-8 text")]
    NotText {
        /// The column.
        column: String,
    },
    /// Anything else, for example an undefined value.
    #[error("Line {line}: {kind}")]
    Failed {
        /// The template's line.
        line: usize,
        /// The kind of error.
        kind: ErrorKind,
    },
}

impl From<Exhausted> for Unprintable {
    fn from(exhausted: Exhausted) -> Self {
        match exhausted {
            Exhausted::Time(limit) => Self::TooSlow { limit },
            Exhausted::Memory => Self::TooMuch { limit: MADE },
        }
    }
}

impl Unprintable {
    /// What to do, in one sentence.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Null { .. } => {
                "Add default(\"…\") in the template where a value may be NULL, or correct the row.".to_owned()
            }
            Self::TooLarge { .. } => "Print less in the template, or shorten the row's values.".to_owned(),
            Self::TooDeep { .. } => "Flatten the row's JSON, or leave the column out of the template.".to_owned(),
            Self::JsonTooLarge { .. } => {
                "Shorten the row's JSON, or read it by fromjson once and keep it: {% set … %}.".to_owned()
            }
            Self::TooLong { .. } | Self::TooSlow { .. } => {
                "Shorten the lists of the row, or the template's loops over them.".to_owned()
            }
            Self::TooMuch { .. } => {
                "Shorten the row's values, or bound the width, count or separator that the template takes from them."
                    .to_owned()
            }
            Self::Traversal => "Correct the row: a value in the URL's path must not be \".\" or \"..\".".to_owned(),
            Self::NotText { column } => format!("Leave {column} out of the template, or convert it to text in a view."),
            Self::Failed { line, kind: ErrorKind::UndefinedError } => {
                format!(
                    "Correct the name in line {line} of the template, or add default(\"…\"): its object has no such member."
                )
            }
            Self::Failed { line, kind: ErrorKind::InvalidOperation } => format!(
                "Correct line {line} of the template: it uses a value in a way that the value's type does not allow. \
                 Text that holds JSON needs the filter fromjson before a loop; NULL is no list."
            ),
            Self::Failed { line, .. } => format!("Correct line {line} of the template."),
        }
    }
}
