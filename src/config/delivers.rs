//! What of a relay's configuration decides what it delivers, and where.
//!
//! Left out is the relay's name, so that a renamed relay is known by what it delivers; what only decides how fast, how many at a
//! time, or from where a new cursor begins: `start`, `[relay.turn]`, `[relay.poll]`, `freshness`, `limit`, `in_flight`,
//! `per_tenant_concurrency`, `timeout`, `rate_per_second`, `connections` (but for whether due work, requests and streams that send no row
//! twice have lanes: see [`lanes`]); what only opens the way there: passwords, tokens,
//! `ca_file`, `[kafka.properties]`; `shards` and `shard_key`, which a cursor's identity has; and `on_config_change` itself.

use std::time::Duration;

use sha2::{Digest as _, Sha256};

use super::fingerprint;
use super::show::{self, Secrets};
use super::sink::custom_without_secrets;
use crate::notation::hex;
use crate::pace;
use crate::relay::{Config, Guarantee, Lanes, OnConfigChange, Start, TurnConfig};
use crate::secret::Secret;
use crate::sink::{self, http, kafka::ClusterConfig};
use crate::source;

/// The digest, in hexadecimal digits. Nothing secret goes into it.
pub(super) fn digest(config: &Config, cluster: Option<&ClusterConfig>) -> String {
    let mut text = show::relay(&plain(config), Secrets::Hidden);
    text.push_str(&config.sink.target());
    if let sink::Config::Custom(custom) = &config.sink {
        text.push_str(&custom_without_secrets(custom));
    }
    // Another registry gives other ids.
    if let Some(schema) = fingerprint::schema(&config.sink) {
        text.push_str(&schema.registry.url);
    }
    let to_kafka = config.sink.of_kind().goes_to_cluster() || config.dead_letter_topic.is_some();
    if let Some(cluster) = cluster.filter(|_| to_kafka) {
        let mut servers: Vec<&str> = cluster.bootstrap_servers.split(',').map(str::trim).collect();
        servers.sort_unstable();
        text.push_str(&servers.join(","));
    }
    hex(&Sha256::digest(text.as_bytes()))
}

/// The same configuration, with one value of everything that does not count.
fn plain(config: &Config) -> Config {
    let mut plain = config.clone();
    let none = Duration::ZERO;
    plain.relay.clear();
    (plain.start, plain.shard) = (Start::Beginning, None);
    plain.on_config_change = OnConfigChange::default();
    (plain.parking.rows, plain.parking.keys) = (0, 0);
    plain.lanes = Lanes { in_flight: lanes(config), ..Lanes::default() };
    plain.turn = TurnConfig { rows: 0, bytes: 0, max_row_bytes: 0, time: none, deadline: none };
    plain.poll = pace::Config::default();
    match &mut plain.source {
        source::Config::Stream(_) => {}
        source::Config::Pending(pending) => (pending.limit, pending.in_flight) = (0, 0),
        source::Config::Requests(requests) => (requests.limit, requests.in_flight) = (0, 0),
        source::Config::Schedule(schedules) => (schedules.in_flight, schedules.per_tenant) = (0, 0),
    }
    match &mut plain.sink {
        sink::Config::Http(http) => calm(http),
        sink::Config::Webhook(webhook) => calm(&mut webhook.request),
        sink::Config::Sms(sms) => {
            (sms.timeout, sms.rate_per_second) = (none, None);
            sms.auth_token = Secret::Value(String::new().into());
        }
        sink::Config::Email(email) => {
            (email.timeout, email.rate_per_second, email.connections) = (none, None, 0);
            (email.server.credentials, email.server.ca_file) = (None, None);
        }
        sink::Config::Kafka(_)
        | sink::Config::Sql(_)
        | sink::Config::Stdout(_)
        | sink::Config::Command(_)
        | sink::Config::Custom(_) => {}
    }
    plain
}

/// Whether it counts that the relay has lanes, in the form of an `in_flight`; how many are on their way never counts.
///
/// Jobs that are sent each on their own have an order with lanes only, and only among replicas that all have them. A position keeps the
/// order of a stream however many replicas have which configuration; but where no row may be sent twice, one without lanes halts at rows
/// that one with lanes has sent beyond the position.
fn lanes(config: &Config) -> usize {
    let counts = match &config.source {
        source::Config::Pending(pending) => pending.lanes.is_some(),
        source::Config::Requests(requests) => requests.lanes.is_some(),
        source::Config::Stream(_) => config.guarantee == Guarantee::AtMostOnce && config.lanes.are_used(),
        source::Config::Schedule(_) => false,
    };
    if counts { 2 } else { Lanes::default().in_flight }
}

fn calm(http: &mut http::Config) {
    (http.timeout, http.rate_per_second) = (Duration::ZERO, None);
}
