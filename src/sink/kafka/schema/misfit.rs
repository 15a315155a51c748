//! Why a row does not fit a schema: which field, and what is wrong with it; nothing of its value.

use std::fmt;

use crate::visible;

/// A name from a row is shown up to so many bytes.
const NAME: usize = 63;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Misfit {
    /// A value is not what the schema asks for.
    Value {
        /// Where it stands, from the row's object on; empty for the payload as a whole.
        path: String,
        /// What it is, and what it should be.
        what: String,
    },
    /// Encoded it takes more bytes than a record may; so many were counted.
    Large(usize),
}

impl Misfit {
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self::Value { path: String::new(), what: what.into() }
    }

    /// The same, found in the member of this name.
    pub(super) fn in_field(self, name: &str) -> Self {
        self.below(visible::words(name, NAME))
    }

    /// The same, found in the element of this number.
    pub(super) fn in_element(self, number: usize) -> Self {
        self.below(format!("[{number}]"))
    }

    fn below(self, parent: String) -> Self {
        match self {
            Self::Value { path, what } => {
                let point = if path.is_empty() || path.starts_with('[') { "" } else { "." };
                Self::Value { path: format!("{parent}{point}{path}"), what }
            }
            Self::Large(bytes) => Self::Large(bytes),
        }
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value { path, what } if path.is_empty() => f.write_str(what),
            Self::Value { path, what } => write!(f, "field {path}: {what}"),
            Self::Large(bytes) => write!(f, "more than {bytes} bytes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_leads_from_the_row_to_the_value() {
        let misfit = Misfit::new("it is null").in_field("city").in_element(3).in_field("addresses");
        assert_eq!(misfit.to_string(), "field addresses[3].city: it is null");
        assert_eq!(Misfit::new("it is null").to_string(), "it is null");
        let name = format!("a\n{}", "ü".repeat(100));
        let long = Misfit::new("x").in_field(&name).to_string();
        assert!(long.starts_with("field a\\u{a}ü") && long.len() < 100, "{long}");
        assert_eq!(Misfit::Large(7).in_field("a"), Misfit::Large(7));
    }
}
