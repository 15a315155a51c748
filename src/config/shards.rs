//! `shards` and `shard_key` of a `[[relay]]`: several cursors share its rows by key.

use super::parking;
use super::problem::Wrong;
use super::section::Section;
use super::show::TomlLines;
use super::value;
use crate::relay::{Config, OnPoison, Parking};
use crate::sink;
use crate::source::shard::{MOST, Shard};
use crate::source::{self};

/// How the rows of a relay are shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shards {
    of: u32,
    key: String,
}

/// Reads both keys; none when one cursor reads all.
pub(super) fn read(
    relay: &Section<'_>,
    source: Option<&source::Config>,
    sink: Option<&sink::Config>,
    (on_poison, parking): (OnPoison, &Parking),
) -> Option<Shards> {
    let of = relay.read("shards", value::integer(1..=MOST)).and_then(|of| u32::try_from(of).ok());
    let key = relay.read("shard_key", value::column);
    for at in ["shards", "shard_key"].into_iter().filter(|at| relay.has(at)) {
        if !matches!(source, None | Some(source::Config::Stream(_))) {
            let what =
                "rows that are sent each on their own have no order to be shared: replicas share them row by row";
            relay.problem(at, Wrong::new(what, "remove it"));
            return None;
        }
    }
    let (of, sink) = (of.filter(|of| *of > 1)?, sink?);
    if rate(sink).is_some() {
        let what = "rate_per_second holds for one cursor, and so many would send so many times as fast";
        relay.problem("shards", Wrong::new(what, "remove one of the two"));
    }
    let parked = parking::column(on_poison, parking, Some(sink));
    let (sinks_key, unordered) = match sink {
        sink::Config::Kafka(kafka) => (kafka.key.clone(), kafka.unordered),
        sink::Config::Http(_)
        | sink::Config::Sms(_)
        | sink::Config::Webhook(_)
        | sink::Config::Sql(_)
        | sink::Config::Email(_)
        | sink::Config::Stdout(_)
        | sink::Config::Command(_)
        | sink::Config::Custom(_) => (parked.clone(), false),
    };
    match (key, sinks_key) {
        (Some(key), Some(other)) if key != other && !unordered => {
            let whose = if parked.is_some() { "by which rows are parked" } else { "the sink's key" };
            let what = format!("rows of one {other}, {whose}, could be in several shards, and out of order");
            relay.problem("shard_key", Wrong::new(what, format!("write shard_key = {other:?}, or remove it")));
            None
        }
        (Some(key), _) | (None, Some(key)) => Some(Shards { of, key }),
        (None, None) => {
            let what = "shards keep the order of rows with equal keys, and no key is named";
            let fix = match sink {
                sink::Config::Kafka(_) => "set the sink's key, or write shard_key = \"id\" where no order is needed",
                _ => "write shard_key = \"column\": rows with equal values of it stay in order",
            };
            relay.problem("shards", Wrong::new(what, fix));
            None
        }
    }
}

/// The rate of a sink that is held back to one.
fn rate(sink: &sink::Config) -> Option<f64> {
    match sink {
        sink::Config::Http(http) => http.rate_per_second,
        sink::Config::Webhook(webhook) => webhook.request.rate_per_second,
        sink::Config::Sms(sms) => sms.rate_per_second,
        sink::Config::Email(email) => email.rate_per_second,
        sink::Config::Custom(custom) => custom.description.min_interval.map(|interval| interval.as_secs_f64().recip()),
        sink::Config::Kafka(_) | sink::Config::Sql(_) | sink::Config::Stdout(_) | sink::Config::Command(_) => None,
    }
}

impl Shards {
    /// The first of them; see [`spread`].
    pub(super) fn first(self) -> Shard {
        Shard { key: self.key, of: self.of, number: 0 }
    }
}

/// A relay for each shard, all of one fingerprint; the relay itself when it has none.
pub(super) fn spread(relay: Config) -> Vec<Config> {
    let Some(shard) = relay.shard.clone() else { return vec![relay] };
    let of_number = |number| Config {
        name: format!("{}#{number}", relay.relay),
        shard: Some(Shard { number, ..shard.clone() }),
        ..relay.clone()
    };
    (0..shard.of).map(of_number).collect()
}

/// Both keys.
pub(super) fn write(lines: &mut TomlLines, shard: Option<&Shard>) {
    if let Some(shard) = shard {
        lines.raw("shards", shard.of);
        lines.text("shard_key", &shard.key);
    }
}
