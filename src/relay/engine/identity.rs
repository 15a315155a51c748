//! What a cursor belongs to, as JSON, and the words for what differs between two such identities.

/// The words of an identity, in the order in which they are shown.
const WORDS: [&str; 6] = ["table", "sink", "target", "system", "shards", "shard_key"];

/// One fact that is another now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Which.
    pub what: &'static str,
    /// What the cursor has known.
    pub known: String,
    /// What the relay finds.
    pub found: String,
}

/// The words of two identities that differ.
pub(in crate::relay) fn words(known: Option<&serde_json::Value>, found: &serde_json::Value) -> Vec<Change> {
    let Some(known) = known else { return Vec::new() };
    let text = |identity: &serde_json::Value, word: &str| {
        identity.get(word).and_then(serde_json::Value::as_str).unwrap_or("-").to_owned()
    };
    WORDS
        .into_iter()
        .filter(|word| known.get(word) != found.get(word))
        .map(|what| Change { what, known: text(known, what), found: text(found, what) })
        .collect()
}

/// What a configuration changes about a cursor, as a sentence; both identities as JSON.
#[must_use]
pub fn difference(cursor: &str, known: &str, found: &str) -> String {
    let parsed = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap_or_default();
    let (known, found) = (parsed(known), parsed(found));
    let topics = [&known, &found].iter().all(|identity| identity["sink"] == "kafka");
    let changes = words(Some(&known), &found).into_iter().map(|change| {
        let (what, absent) = match change.what {
            "target" if topics => ("topic", "none"),
            "system" => ("database system", "none"),
            "shards" => ("number of shards", "1"),
            "shard_key" => ("shard key", "none"),
            what => (what, "none"),
        };
        let value = |value: String| if value == "-" { absent.to_owned() } else { value };
        format!("{what} {} becomes {}", value(change.known), value(change.found))
    });
    let changes: Vec<String> = changes.collect();
    format!("this configuration changes what cursor {cursor} belongs to: {}", changes.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_words_of_an_identity_that_differ_are_shown_and_an_unknown_one_differs_in_none() {
        let known = serde_json::json!({ "table": "a", "sink": "kafka", "target": "t", "system": "1" });
        let found = serde_json::json!({ "system": "1", "table": "b", "sink": "kafka", "target": "t" });
        let table = Change { what: "table", known: "a".to_owned(), found: "b".to_owned() };
        assert_eq!(words(Some(&known), &found), [table]);
        assert!(words(None, &found).is_empty());
    }

    #[test]
    fn difference_names_changes_in_words() {
        let known = r#"{"table": "a", "sink": "kafka", "target": "t", "system": "1"}"#;
        let found = r#"{"table": "b", "sink": "kafka", "target": "u", "system": "1", "shards": "4", "shard_key": "k"}"#;
        assert_eq!(
            difference("c", known, found),
            "this configuration changes what cursor c belongs to: table a becomes b, topic t becomes u, number of shards 1 \
             becomes 4, shard key none becomes k"
        );
        let http = r#"{"table": "a", "sink": "http", "target": "https://x", "system": "1"}"#;
        let said = difference("c", known, http);
        assert!(said.ends_with(": sink kafka becomes http, target t becomes https://x"), "{said}");
    }
}
