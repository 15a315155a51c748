//! What the library's errors say.

use minijinja::{Error, ErrorKind};

use super::Unprintable;

/// Errors that no row can fix, so that they belong to start-up.
pub(super) fn is_broken(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::UnknownFilter
            | ErrorKind::UnknownTest
            | ErrorKind::UnknownFunction
            | ErrorKind::UnknownMethod
            | ErrorKind::TemplateNotFound
            | ErrorKind::BadInclude
            | ErrorKind::MissingArgument
            | ErrorKind::TooManyArguments
    )
}

pub(super) fn describe(error: &Error) -> String {
    let detail = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    format!("the template is broken in line {}: {detail}", error.line().unwrap_or(1))
}

pub(super) fn failed(error: &Error) -> Unprintable {
    Unprintable::Failed { line: error.line().unwrap_or(1), kind: error.kind() }
}

/// Our own mark on an error.
pub(super) fn cause<T: std::error::Error + 'static>(error: &Error) -> Option<&T> {
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        if let Some(found) = inner.downcast_ref() {
            return Some(found);
        }
        source = inner.source();
    }
    None
}
