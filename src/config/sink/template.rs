//! Templates in the configuration: their syntax is checked before anything runs.

use minijinja::Environment;

use crate::config::problem::Wrong;

/// Checks the syntax; whether the columns exist is for `check`.
pub(super) fn parse(text: &str) -> Result<String, Wrong> {
    let environment = Environment::new();
    match environment.template_from_str(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => {
            let reason = error.detail().map_or_else(|| error.kind().to_string(), ToOwned::to_owned);
            let fix = "write columns as {{ column }}; literal braces as {{ '{{' }}";
            Err(Wrong::new(format!("not a template: {reason}"), fix))
        }
    }
}

/// Whether a text holds anything that a row fills.
pub(super) fn is_fixed(text: &str) -> bool {
    !["{{", "{%", "{#"].iter().any(|mark| text.contains(mark))
}
