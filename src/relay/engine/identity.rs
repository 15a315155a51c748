//! What a cursor belongs to, as JSON, and the words for what differs between two such identities.

/// The words of an identity, in the order in which they are shown.
const WORDS: [&str; 6] = ["table", "sink", "target", "system", "shards", "shard_key"];

/// What a relay reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::relay) enum SourceKind {
    /// The rows of a table, in their order.
    Stream,
    /// Rows that are due.
    Pending,
    /// Requests of the ledger.
    Requests,
    /// Actions of schedules.
    Schedules,
}

impl SourceKind {
    /// Of the relay of a cursor with this identity, so that it is known of a relay that is not configured, too.
    pub(in crate::relay) fn of(identity: &str) -> Self {
        let identity: serde_json::Value = serde_json::from_str(identity).unwrap_or_default();
        match (identity["sink"].as_str(), identity["table"].as_str()) {
            (Some("requests"), _) => Self::Requests,
            (Some("due work"), Some("outbox.action")) => Self::Schedules,
            (Some("due work"), _) => Self::Pending,
            _ => Self::Stream,
        }
    }
}

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
    fn kind_of_source_is_known_by_the_identity() {
        let of =
            |sink: &str, table: &str| SourceKind::of(&serde_json::json!({ "sink": sink, "table": table }).to_string());
        assert_eq!(of("requests", "outbox.request"), SourceKind::Requests);
        assert_eq!(of("due work", "outbox.action"), SourceKind::Schedules);
        assert_eq!(of("due work", "public.todos"), SourceKind::Pending);
        assert_eq!((of("kafka", "public.bookings"), SourceKind::of("")), (SourceKind::Stream, SourceKind::Stream));
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
