//! The labels by which rows of due work are named: those of enums among the columns of the key, and of the one that has a row's
//! lane. Pure.
//!
//! Claims and marks name a row by the text of its key, and `ALTER TYPE … RENAME VALUE` gives rows that are there another text: a
//! mark would be another row's, or none's. Promise: no row is claimed, and no outcome is recorded, by other labels than those
//! that the cursor remembers.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::Pending;
use super::catalogue::{Column, Enum};
use crate::source::enums::EnumValue;

/// The labels, by column, and of each by the value's oid.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Names(BTreeMap<String, BTreeMap<u32, String>>);

/// The labels, and whose they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Naming {
    /// The labels.
    pub names: Names,
    /// The oids of their enums.
    pub enums: Vec<u32>,
}

/// A value that is called otherwise now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renamed {
    /// The column.
    pub column: String,
    /// Its former label.
    pub from: String,
    /// Its present one.
    pub to: String,
}

impl fmt::Display for Renamed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "label {:?} of column {} is {:?} now", self.from, self.column, self.to)
    }
}

impl Names {
    /// Rows are named without labels.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What [`Self::text`] has made; none of any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// As a cursor remembers them.
    #[must_use]
    pub fn text(&self) -> String {
        serde_json::json!(self).to_string()
    }

    /// The values that were called otherwise when these were `known`. Of a value that was not known, no row was named.
    #[must_use]
    pub fn renamed(&self, known: &Self) -> Vec<Renamed> {
        let mut renamed = Vec::new();
        for (column, labels) in &self.0 {
            let Some(known) = known.0.get(column) else { continue };
            for (oid, to) in labels {
                if let Some(from) = known.get(oid).filter(|from| *from != to) {
                    renamed.push(Renamed { column: column.clone(), from: from.clone(), to: to.clone() });
                }
            }
        }
        renamed
    }
}

impl Naming {
    /// Those of the columns that this configuration names rows by.
    pub(super) fn of(columns: &[Column], config: &Pending) -> Self {
        let lane = config.lanes.as_ref().and_then(|lanes| lanes.column.as_ref());
        let is_used = |name: &String| config.key.contains(name) || lane == Some(name);
        let used = columns.iter().filter(|column| is_used(&column.name));
        let used: Vec<(String, &Enum)> =
            used.filter_map(|column| Some((column.name.clone(), column.of_enum.as_ref()?))).collect();
        Self {
            enums: used.iter().map(|(_, of)| of.oid).collect(),
            names: Names(used.into_iter().map(|(name, of)| (name, values(of))).collect()),
        }
    }

    /// Whether these values, all that their enums have, are those that are known, under their known labels.
    #[must_use]
    pub fn is_all_of(&self, values: &[EnumValue]) -> bool {
        let known: BTreeMap<u32, &str> = self.known().collect();
        now(values) == known
    }

    /// Whether the known ones among these values have their known labels.
    #[must_use]
    pub fn holds(&self, values: &[EnumValue]) -> bool {
        let now = now(values);
        self.known().all(|(oid, label)| now.get(&oid) == Some(&label))
    }

    fn known(&self) -> impl Iterator<Item = (u32, &str)> {
        self.names.0.values().flatten().map(|(oid, label)| (*oid, label.as_str()))
    }
}

fn now(values: &[EnumValue]) -> BTreeMap<u32, &str> {
    values.iter().map(|value| (value.oid, value.label.as_str())).collect()
}

/// By oid, which a label's version begins with.
fn values(of: &Enum) -> BTreeMap<u32, String> {
    let oid = |version: &String| version.split('.').next()?.parse().ok();
    of.labels.iter().filter_map(|(label, version)| Some((oid(version)?, label.clone()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(labels: &[(u32, &str)]) -> Names {
        let labels = labels.iter().map(|(oid, label)| (*oid, (*label).to_owned())).collect();
        Names([("kind".to_owned(), labels)].into())
    }

    #[test]
    fn value_that_was_known_and_is_called_otherwise_is_renamed_and_one_that_is_new_is_not() {
        let known = names(&[(1, "sms"), (2, "mail")]);
        let read_back = Names::parse(&known.text()).expect("it is what was written");
        assert_eq!(read_back, known);
        assert!(Names::parse("timestamp with time zone (6 digits), integer").is_none(), "a stream's");
        assert!(names(&[(1, "sms"), (2, "mail"), (3, "push")]).renamed(&known).is_empty());
        // A type of its own that has the same labels.
        assert!(names(&[(7, "mail"), (8, "sms")]).renamed(&known).is_empty());
        let exchanged = names(&[(1, "mail"), (2, "sms")]).renamed(&known);
        let said: Vec<String> = exchanged.iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            ["label \"sms\" of column kind is \"mail\" now", "label \"mail\" of column kind is \"sms\" now"]
        );
    }

    #[test]
    fn claims_need_every_label_as_it_was_and_records_those_that_were_known() {
        let naming = Naming { names: names(&[(1, "sms"), (2, "mail")]), enums: vec![9] };
        let value = |oid: u32, label: &str| EnumValue { of: 9, oid, label: label.to_owned() };
        let same = [value(2, "mail"), value(1, "sms")];
        assert!(naming.is_all_of(&same) && naming.holds(&same));
        let more = [value(2, "mail"), value(1, "sms"), value(3, "push")];
        assert!(!naming.is_all_of(&more) && naming.holds(&more));
        for other in [vec![value(1, "mail"), value(2, "sms")], vec![value(1, "sms")], Vec::new()] {
            assert!(!naming.is_all_of(&other) && !naming.holds(&other), "{other:?}");
        }
    }
}
