//! Every key that can be configured, by section, as the reference file (`deploy/outbox-relay.toml`) has it: the reader and its
//! suggestions know what is written there.

use std::sync::LazyLock;

use super::REFERENCE;

/// A section and its keys, in the order of the reference. Sections whose keys are the user's own (`[kafka.properties]`,
/// `headers`) are keys of their parent only.
type Known = (&'static str, Vec<&'static str>);

/// Sections of which the reference has examples only: the keys of some stand in one line, others are the user's own.
const WRITTEN: [(&str, &[&str]); 3] = [
    ("kafka.aws_iam", &["region", "role_arn", "profile", "session_name"]),
    ("relay.sink.kafka.payload", &["row", "column", "columns"]),
    ("relay.sink.custom", &["kind"]),
];

/// Sections whose other keys are the user's own.
const OPEN: [&str; 2] = ["kafka.properties", "relay.sink.custom"];

/// Sections of sections whose names are the user's own.
const NAMED: [&str; 3] = ["relay.sink.email.templates", "relay.sink.command.programs", "relay.source.schedule.queries"];

/// Before what is not set in the reference: a default, an example, an alternative, an example of a program of one's own.
pub(super) const MARKS: [&str; 4] = ["# ", "#+ ", "#| ", "#: "];

static SECTIONS: LazyLock<Vec<Known>> = LazyLock::new(|| {
    let mut sections: Vec<Known> = WRITTEN.iter().map(|(name, keys)| (*name, keys.to_vec())).collect();
    sections.insert(0, ("", Vec::new()));
    let mut add = |section: &'static str, key: Option<&'static str>| {
        let at = sections.iter().position(|(name, _)| *name == section).unwrap_or_else(|| {
            sections.push((section, Vec::new()));
            sections.len() - 1
        });
        let keys = &mut sections[at].1;
        keys.extend(key.filter(|key| !keys.contains(key)));
    };
    let mut section = "";
    for line in REFERENCE.lines() {
        let line = MARKS.into_iter().find_map(|mark| line.strip_prefix(mark)).unwrap_or(line);
        if let Some(name) = header(line) {
            section = name;
            // Each part is a key of what stands before it.
            for (at, _) in name.match_indices('.').chain([(name.len(), "")]) {
                let (parent, key) = name[..at].rsplit_once('.').unwrap_or(("", &name[..at]));
                add(parent, Some(key));
            }
            if !OPEN.contains(&name) {
                add(name, None);
            }
        } else if let Some(key) = setting(line).filter(|_| !OPEN.contains(&section)) {
            add(section, Some(key));
        }
    }
    sections
});

/// The section that a line begins; of one with a name of the user's own, what stands before the name.
fn header(line: &'static str) -> Option<&'static str> {
    let name = line.trim_start_matches('[').strip_suffix("]]").or_else(|| line.strip_prefix('[')?.strip_suffix(']'))?;
    let is_name = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.".contains(c));
    let parent = NAMED.into_iter().find(|parent| name.strip_prefix(parent).is_some_and(|own| own.starts_with('.')));
    is_name.then_some(parent.unwrap_or(name))
}

/// The key that a line sets.
pub(super) fn setting(line: &str) -> Option<&str> {
    let (key, _) = line.split_once(" = ")?;
    key.chars().all(|c| c.is_ascii_lowercase() || "_.".contains(c)).then_some(key)
}

/// Whether a section takes any key.
pub(super) fn is_open(section: &str) -> bool {
    OPEN.contains(&section)
}

/// Whether it is a key of some section.
pub(super) fn is_known(key: &str) -> bool {
    SECTIONS.iter().any(|(_, keys)| keys.contains(&key))
}

/// What a key is, seen from a section.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Known,
    /// A known key of another section.
    Elsewhere(&'static str),
    /// No key; perhaps this one is meant.
    Unknown(Option<&'static str>),
}

pub(super) fn of(section: &str) -> &'static [&'static str] {
    SECTIONS.iter().find(|(name, _)| *name == section).map_or(&[], |(_, keys)| keys.as_slice())
}

pub(super) fn standing(section: &str, key: &str) -> Standing {
    if of(section).contains(&key) {
        return Standing::Known;
    }
    if let Some(nearest) = nearest(key, of(section).iter().copied()) {
        return Standing::Unknown(Some(nearest));
    }
    let root = section.split('.').next().unwrap_or_default();
    let elsewhere = SECTIONS
        .iter()
        .rev()
        .filter(|(_, keys)| keys.contains(&key))
        .map(|(name, _)| *name)
        .max_by_key(|name| name.split('.').next() == Some(root));
    elsewhere.filter(|name| !name.is_empty()).map_or(Standing::Unknown(None), Standing::Elsewhere)
}

/// The nearest of some names, if one is near: a slip of the fingers, not another word.
pub(super) fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_ascii_lowercase().replace('-', "_");
    let names: Vec<&str> = names.into_iter().collect();
    let longer = names.iter().copied().find(|name| word.len() >= 4 && name.starts_with(&word));
    names
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&word, &name.to_ascii_lowercase()), name))
        .filter(|(distance, name)| *distance <= (name.len().max(word.len()) / 3).max(1) && *distance < name.len())
        .min()
        .map(|(_, name)| name)
        .or(longer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_other_words_are_not() {
        assert_eq!(standing("postgres", "pool_sise"), Standing::Unknown(Some("pool_size")));
        assert_eq!(standing("postgres", "pool-size"), Standing::Unknown(Some("pool_size")));
        assert_eq!(standing("relay", "deadline"), Standing::Elsewhere("relay.turn"));
        assert_eq!(standing("relay", "timeout"), Standing::Elsewhere("relay.sink.sms"));
        assert_eq!(standing("relay", "shard"), Standing::Unknown(Some("shards")));
        assert_eq!(standing("postgres", "password"), Standing::Unknown(Some("password_file")));
        assert_eq!(standing("relay", "colour"), Standing::Unknown(None));
        assert_eq!(standing("relay.poll", "x"), Standing::Unknown(None));
    }
}
