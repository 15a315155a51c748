//! Every key that can be configured, by section: the one list that the reader, its suggestions and the test of the
//! reference file share.

/// The sections and their keys. Sections whose keys are the user's own (`[kafka.properties]`, `headers`) are keys of
/// their parent only.
pub(super) const SECTIONS: &[(&str, &[&str])] = &[
    ("", &["postgres", "kafka", "admin", "metrics", "intake", "shutdown", "retention", "relay"]),
    ("postgres", &["url", "password_file", "ca_file", "pool_size"]),
    ("kafka", &["bootstrap_servers", "sasl_password_file", "properties"]),
    ("admin", &["listen"]),
    ("metrics", &["phases"]),
    ("intake", &["listen", "token_file", "body_limit", "connections", "timeout"]),
    ("shutdown", &["grace"]),
    (
        "retention",
        &["completed_requests", "sent_marks", "dead_letters", "actions", "messages", "messages_ahead", "every"],
    ),
    (
        "relay",
        &[
            "name",
            "guarantee",
            "on_poison",
            "on_unknown",
            "on_config_change",
            "dead_letter_topic",
            "start",
            "latency_window",
            "shards",
            "shard_key",
            "source",
            "turn",
            "poll",
            "sink",
        ],
    ),
    ("relay.source", &["stream", "pending", "requests", "schedule"]),
    ("relay.source.stream", &["table", "id", "created_at", "horizon", "time_zone"]),
    ("relay.source.pending", &["table", "key", "due", "due_after", "sent", "where", "time_zone", "limit", "in_flight"]),
    ("relay.source.requests", &["templates", "limit", "in_flight"]),
    ("relay.source.schedule", &["in_flight", "per_tenant_concurrency", "schema", "role", "queries"]),
    ("relay.source.schedule.queries", &["sql", "timeout", "when", "max_rows"]),
    ("relay.turn", &["rows", "bytes", "max_row_bytes", "time", "deadline"]),
    ("relay.poll", &["min", "max", "standby", "notify"]),
    ("relay.sink", &["kafka", "http", "sms", "webhook", "email", "sql", "stdout", "command", "custom"]),
    ("relay.sink.command", &["programs"]),
    ("relay.sink.command.programs", &["program", "args", "timeout", "memory", "output"]),
    ("relay.sink.kafka", &["topic", "key", "unordered", "on_partition_change", "payload", "headers"]),
    ("relay.sink.kafka.payload", &["row", "column", "columns"]),
    (
        "relay.sink.http",
        &["method", "url", "headers", "body", "timeout", "rate_per_second", "key_memory", "ask", "provider_id"],
    ),
    (
        "relay.sink.webhook",
        &[
            "method",
            "url",
            "headers",
            "body",
            "body_limit",
            "secret_file",
            "secret_files",
            "allow",
            "timeout",
            "rate_per_second",
            "key_memory",
        ],
    ),
    (
        "relay.sink.email",
        &[
            "server",
            "port",
            "security",
            "username",
            "password_file",
            "ca_file",
            "hello_name",
            "timeout",
            "rate_per_second",
            "key_memory",
            "connections",
            "from",
            "reply_to",
            "to",
            "template",
            "message_id_domain",
            "templates",
        ],
    ),
    ("relay.sink.email.templates", &["subject", "text", "text_file", "html", "html_file"]),
    (
        "relay.sink.sms",
        &[
            "provider",
            "base_url",
            "account_sid",
            "auth_token",
            "auth_token_file",
            "from",
            "to",
            "text",
            "timeout",
            "rate_per_second",
            "key_memory",
        ],
    ),
    ("relay.sink.sql", &["statement", "parameters", "each"]),
    ("relay.sink.stdout", &[]),
    ("relay.sink.custom", &["kind"]),
];

/// Sections whose other keys are the user's own.
pub(super) const OPEN: [&str; 1] = ["relay.sink.custom"];

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
    SECTIONS.iter().find(|(name, _)| *name == section).map_or(&[], |(_, keys)| keys)
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
