//! Which librdkafka properties may be set: all but those that would break a guarantee.

use std::collections::BTreeMap;

use rdkafka::ClientConfig;
use rdkafka::error::KafkaError;

use super::problem::Wrong;

/// Why a property is refused, unless it has a value that changes nothing.
struct Rule {
    names: &'static [&'static str],
    harmless: &'static [&'static str],
    why: &'static str,
    fix: &'static str,
}

const LINGER: &str = "linger.ms";
const IN_FLIGHT: &str = "max.in.flight";

/// Two names of one property, the one that is passed on first.
const ALIASES: &[(&str, &str)] = &[
    (LINGER, "queue.buffering.max.ms"),
    ("compression.codec", "compression.type"),
    ("sasl.mechanism", "sasl.mechanisms"),
    (IN_FLIGHT, "max.in.flight.requests.per.connection"),
];

const REMOVE: &str = "remove it";
/// Of librdkafka's own way to tokens, which is not built in.
pub(super) const FETCHED: &str = "tokens are fetched by the relay, not by librdkafka";

const RULES: &[Rule] = &[
    Rule {
        names: &["bootstrap.servers", "metadata.broker.list"],
        harmless: &[],
        why: "the brokers would be given twice",
        fix: "set [kafka] bootstrap_servers instead",
    },
    Rule {
        names: &["enable.idempotence"],
        harmless: &["true"],
        why: "without idempotence a repeated request duplicates and reorders records",
        fix: REMOVE,
    },
    Rule {
        names: &["enable.gapless.guarantee"],
        harmless: &["true"],
        why: "without it records after a refused one are written before it",
        fix: REMOVE,
    },
    Rule {
        names: &["acks", "request.required.acks"],
        harmless: &["all", "-1"],
        why: "a record counts as delivered only when all in-sync replicas have it",
        fix: REMOVE,
    },
    Rule {
        names: &["transactional.id", "transaction.timeout.ms"],
        harmless: &[],
        why: "transactions are not available in this version",
        fix: REMOVE,
    },
    Rule {
        names: &["partitioner"],
        harmless: &["murmur2_random"],
        why: "keys go to the partitions that Kafka's Java client chooses; another choice breaks the order per key",
        fix: REMOVE,
    },
    Rule {
        names: &["message.timeout.ms", "delivery.timeout.ms"],
        harmless: &[],
        why: "a message that expires alone lets younger ones overtake it; the turn's deadline purges all of them together",
        fix: "set [relay.turn] deadline instead",
    },
    Rule {
        names: &["allow.auto.create.topics"],
        harmless: &["false"],
        why: "a mistyped topic would be created and filled instead of reported",
        fix: "create the topic",
    },
    Rule {
        names: &["message.max.bytes", "batch.size"],
        harmless: &[],
        why: "it follows from the topic's own limit; above it everything would be refused",
        fix: "set max.message.bytes of the topic instead",
    },
    Rule {
        names: &["retries", "message.send.max.retries"],
        harmless: &["2147483647"],
        why: "a counted retry gives up a record that later ones overtake; time is the limit, not a count",
        fix: "set [relay.turn] deadline instead",
    },
    Rule {
        names: &["queuing.strategy"],
        harmless: &["fifo"],
        why: "another strategy than fifo turns the order round",
        fix: REMOVE,
    },
    Rule {
        names: &["queue.buffering.backpressure.threshold"],
        harmless: &["1"],
        why: "the client takes no other number than 1 together with idempotence, without which records are duplicated and reordered",
        fix: REMOVE,
    },
    Rule {
        names: &["delivery.report.only.error"],
        harmless: &["false"],
        why: "without reports of success no record would ever count as delivered",
        fix: REMOVE,
    },
    Rule {
        names: &["queue.buffering.max.messages"],
        harmless: &[],
        why: "0 means a queue without bounds",
        fix: "write a number above 0",
    },
    Rule {
        names: &["topic.metadata.propagation.max.ms"],
        harmless: &[],
        why: "a topic that does not exist must be reported within a turn",
        fix: REMOVE,
    },
    Rule {
        names: &["socket.nagle.disable"],
        harmless: &["true"],
        why: "records would wait in the operating system before they are sent",
        fix: REMOVE,
    },
    Rule {
        names: &["test.mock.num.brokers", "test.mock.broker.rtt"],
        harmless: &[],
        why: "records would go to brokers inside this process and be gone with it",
        fix: REMOVE,
    },
    Rule {
        names: &[
            "plugin.library.paths",
            "ssl.engine.location",
            "ssl.engine.id",
            "ssl.providers",
            "sasl.kerberos.kinit.cmd",
        ],
        harmless: &[],
        why: "it runs code of others inside the relay, which has every secret in its memory",
        fix: REMOVE,
    },
    Rule {
        names: &[
            "enabled_events",
            "background_event_cb",
            "error_cb",
            "throttle_cb",
            "stats_cb",
            "log_cb",
            "socket_cb",
            "connect_cb",
            "closesocket_cb",
            "open_cb",
            "resolve_cb",
            "dr_cb",
            "dr_msg_cb",
            "partitioner_cb",
            "oauthbearer_token_refresh_cb",
            "msg_order_cmp",
            "opaque",
            "interceptors",
            "default_topic_conf",
            "ssl.certificate.verify_cb",
            "ssl_engine_callback_data",
            "ssl_key",
            "ssl_certificate",
            "ssl_ca",
        ],
        harmless: &[],
        why: "it is for programs that call librdkafka and has no meaning in a file",
        fix: REMOVE,
    },
    Rule {
        names: &[
            "sasl.oauthbearer.client.id",
            "sasl.oauthbearer.client.secret",
            "sasl.oauthbearer.scope",
            "sasl.oauthbearer.token.endpoint.url",
        ],
        harmless: &[],
        why: FETCHED,
        fix: "write it in [kafka.oauth2], as client_id, client_secret_file, scope or token_url",
    },
    Rule {
        names: &["sasl.oauthbearer.extensions"],
        harmless: &[],
        why: FETCHED,
        fix: "write [kafka.oauth2] extensions = { logicalCluster = \"lkc-a1b2c3\" }, each with its name",
    },
];

/// Whether a property may be set to that value.
pub(super) fn accept(name: &str, value: &str) -> Result<(), Wrong> {
    if first_name(name) == IN_FLIGHT && value.parse().is_ok_and(|count: u64| count > 5) {
        let why = "with more than 5 requests in flight brokers cannot recognise repeated ones";
        return Err(Wrong::new(why, "write a number from 1 to 5"));
    }
    if let Some(rule) = RULES.iter().find(|rule| rule.names.contains(&name)) {
        let bounded = name == "queue.buffering.max.messages" && value.parse().is_ok_and(|count: u64| count > 0);
        if !bounded && !rule.harmless.contains(&value) {
            return Err(Wrong::new(rule.why, rule.fix));
        }
    }
    known(name, value)
}

/// Asks librdkafka itself whether it knows the property and takes the value.
fn known(name: &str, value: &str) -> Result<(), Wrong> {
    match ClientConfig::new().set(name, value).create_native_config() {
        Ok(_) => Ok(()),
        Err(KafkaError::ClientConfig(_, reason, _, _)) if reason.contains("No such configuration property") => {
            Err(Wrong::new("librdkafka has no such property", "see its CONFIGURATION.md for the names"))
        }
        // Its own words may repeat the value, which may be a secret.
        Err(_) => Err(Wrong::new("librdkafka refuses this value", "see its CONFIGURATION.md for the values")),
    }
}

/// The one name of a property that has several: given under both, librdkafka would take whichever comes last.
pub(super) fn first_name(name: &str) -> &str {
    ALIASES.iter().find(|(_, other)| *other == name).map_or(name, |(first, _)| first)
}

/// How long the properties let a record wait for company, in milliseconds; 0 when they do not say.
pub(super) fn linger_ms(properties: &BTreeMap<String, String>) -> f64 {
    properties.get(LINGER).and_then(|value| value.parse().ok()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Guarantee: failures.no-code
    #[test]
    fn what_changes_nothing_passes_and_what_breaks_a_guarantee_does_not() {
        for (name, value) in [
            ("acks", "all"),
            ("enable.idempotence", "true"),
            ("linger.ms", "2"),
            ("compression.codec", "zstd"),
            ("max.in.flight", "5"),
            ("security.protocol", "SSL"),
            ("sasl.password", "hunter2"),
            ("queue.buffering.max.messages", "5000"),
        ] {
            assert_eq!(accept(name, value), Ok(()), "{name}");
        }
        for rule in RULES {
            for name in rule.names {
                assert!(accept(name, "0").is_err(), "{name}");
            }
        }
        for name in ["plugin.library.paths", "ssl.engine.location", "ssl.providers"] {
            assert!(accept(name, "/tmp/library.so").is_err_and(|wrong| wrong.what.contains("code")), "{name}");
        }
        assert!(accept("max.in.flight", "6").is_err());
        assert!(accept("max.in.flight.requests.per.connection", "1000000").is_err());
        assert!(accept("linger.milliseconds", "5").is_err());
        assert!(accept("linger.ms", "soon").is_err());
    }
}
