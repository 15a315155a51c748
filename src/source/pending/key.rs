//! What names a row of due work: the text of its key columns.
//!
//! Pure.

/// The key columns' values as PostgreSQL's text, in the configured order.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(pub Vec<String>);

impl Key {
    /// One text for the whole key: the message's id. One column's value is itself; several are joined by `/`, with `~` and
    /// `/` inside of them written `~0` and `~1` (RFC 6901, JSON Pointer), so that no two keys have the same text.
    #[must_use]
    pub fn message_id(&self) -> String {
        match &self.0[..] {
            [one] => one.clone(),
            several => {
                several.iter().map(|part| part.replace('~', "~0").replace('/', "~1")).collect::<Vec<_>>().join("/")
            }
        }
    }

    /// The key of `columns` columns whose [`Self::message_id`] this is; none when it is of another number of columns.
    #[must_use]
    pub fn parse(message_id: &str, columns: usize) -> Option<Self> {
        if columns == 1 {
            return Some(Self(vec![message_id.to_owned()]));
        }
        let parts: Vec<_> = message_id.split('/').map(|part| part.replace("~1", "/").replace("~0", "~")).collect();
        (parts.len() == columns).then_some(Self(parts))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_key_comes_back_from_its_text_whatever_it_holds(parts in prop::collection::vec("[a-c/~01%]{0,6}", 1..=4)) {
            let key = Key(parts);
            prop_assert_eq!(Key::parse(&key.message_id(), key.0.len()), Some(key));
        }

        #[test]
        fn keys_that_differ_have_texts_that_differ(
            keys in prop::collection::hash_set(prop::collection::vec("[a/~01]{0,4}", 2), 2..30)
        ) {
            let texts: HashSet<_> = keys.iter().map(|key| Key(key.clone()).message_id()).collect();
            prop_assert_eq!(texts.len(), keys.len());
        }
    }
}
