//! Change events as Debezium's connector for PostgreSQL publishes them, by `JsonConverter` without schemas: the row is `after` of an insert.
//!
//! Promise: the members of an event are those of Debezium 3.6, whatever the names and values hold. What only the write-ahead log
//! knows is null: nothing is made up.

use std::io::Write as _;
use std::time::SystemTime;

use serde_json::Value;

use crate::message::Message;
use crate::position::Timestamp;

/// `[relay.sink.kafka.debezium]` of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Debezium {
    /// `source.name`, Debezium's `topic.prefix`. None: the relay's name.
    pub name: Option<String>,
}

/// The table that events are of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin<'a> {
    /// The database's name.
    pub database: &'a str,
    /// The table's schema.
    pub schema: &'a str,
    /// The table.
    pub table: &'a str,
}

/// What stands between the values of each event.
#[derive(Debug)]
pub(super) struct Envelope {
    name: String,
    /// From behind `after` to the first instant.
    before_ms: String,
    /// From behind it to the next.
    before_us: String,
    /// From behind the last one to the end of `source`.
    end: String,
}

/// The event of one message.
pub(super) struct Change<'a> {
    envelope: &'a Envelope,
    created_at: Timestamp,
}

impl Envelope {
    pub(super) fn new(config: &Debezium, relay: &str) -> Self {
        let name = config.name.as_deref().unwrap_or(relay);
        let envelope =
            Self { name: name.to_owned(), before_ms: String::new(), before_us: String::new(), end: String::new() };
        envelope.of(Origin::default())
    }

    /// The same, of a table's rows.
    pub(super) fn of(self, origin: Origin<'_>) -> Self {
        let [name, database, schema, table] =
            [&self.name, origin.database, origin.schema, origin.table].map(|text| Value::from(text).to_string());
        let version = env!("CARGO_PKG_VERSION");
        Self {
            name: self.name,
            before_ms: format!(
                ",\"source\":{{\"version\":\"outbox-relay/{version}\",\"connector\":\"postgresql\",\"name\":{name},\"ts_ms\":"
            ),
            before_us: format!(",\"snapshot\":\"false\",\"db\":{database},\"sequence\":null,\"ts_us\":"),
            end: format!(
                ",\"schema\":{schema},\"table\":{table},\"txId\":null,\"lsn\":null,\"xmin\":null,\"origin\":null,\
                 \"origin_lsn\":null}},\"transaction\":null,\"op\":\"c\",\"ts_ms\":"
            ),
        }
    }

    pub(super) fn change(&self, message: &Message<'_>) -> Change<'_> {
        Change { envelope: self, created_at: message.created_at }
    }
}

/// A number takes no more.
const DIGITS: usize = 20;

impl Change<'_> {
    /// The record's value; `after` is a JSON object.
    pub(super) fn value(&self, after: Option<&[u8]>) -> Vec<u8> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
        self.value_at(after.unwrap_or(b"null"), i64::try_from(now).unwrap_or(i64::MAX))
    }

    fn value_at(&self, after: &[u8], now: i64) -> Vec<u8> {
        const BEGIN: &str = "{\"before\":null,\"after\":";
        let Envelope { before_ms, before_us, end, .. } = self.envelope;
        let micros = self.created_at.unix_micros();
        let members: [(&str, i64); 6] = [
            (before_ms, micros.div_euclid(1_000)),
            (before_us, micros),
            (",\"ts_ns\":", micros.saturating_mul(1_000)),
            (end, now / 1_000_000),
            (",\"ts_us\":", now / 1_000),
            (",\"ts_ns\":", now),
        ];
        let length: usize = members.iter().map(|(text, _)| text.len() + DIGITS).sum();
        let mut value = Vec::with_capacity(BEGIN.len() + after.len() + length + 1);
        value.extend_from_slice(BEGIN.as_bytes());
        value.extend_from_slice(after);
        for (text, number) in members {
            value.extend_from_slice(text.as_bytes());
            // A vector takes all that it is given.
            let _ = write!(value, "{number}");
        }
        value.push(b'}');
        value
    }
}

#[cfg(test)]
mod tests;
