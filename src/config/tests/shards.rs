//! `shards` and `shard_key`: one section, several cursors.

use super::*;
use crate::source::shard::Shard;

fn shards(config: &Config) -> Vec<(&str, Option<&Shard>)> {
    config.relays.iter().map(|relay| (relay.name.as_str(), relay.shard.as_ref())).collect()
}

#[test]
fn a_relay_with_shards_has_a_cursor_for_each_and_one_section() {
    let config = parse(&with("name = \"events\"", "name = \"events\"\nshards = 3")).expect("valid");
    let shard = |number| Shard { key: "customer".to_owned(), of: 3, number };
    let [zero, one, two] = [shard(0), shard(1), shard(2)];
    assert_eq!(
        shards(&config),
        [("events#0", Some(&zero)), ("events#1", Some(&one)), ("events#2", Some(&two)), ("sms", None)]
    );
    assert!(config.relays.iter().take(3).all(|relay| relay.relay == "events"));
    let fingerprints: std::collections::BTreeSet<_> = config.relays.iter().map(|relay| &relay.fingerprint).collect();
    assert_eq!(fingerprints.len(), 2, "the shards of a relay are configured alike");
    let shown = config.redacted();
    assert_eq!(shown.matches("[[relay]]").count(), 2, "{shown}");
    assert!(
        shown.contains("name = \"events\"\n") && shown.contains("shards = 3\nshard_key = \"customer\"\n"),
        "{shown}"
    );
    let again = parse(&shown.replace("***", "x")).expect("what is shown can be read");
    assert_eq!(shards(&again), shards(&config));
}

#[test]
fn one_shard_is_none_and_another_number_is_another_configuration() {
    let plain = parse(GOOD).expect("valid");
    assert_eq!(parse(&with("name = \"events\"", "name = \"events\"\nshards = 1")).expect("valid"), plain);
    let of = |shards: &str| {
        parse(&with("name = \"events\"", &format!("name = \"events\"\n{shards}"))).expect("valid").relays[0]
            .fingerprint
            .clone()
    };
    assert!(of("shards = 2") != of("shards = 3") && of("shards = 2") != plain.relays[0].fingerprint);
}

#[test]
fn a_relay_is_chosen_with_all_of_its_shards_and_a_shard_alone() {
    let config = parse(&with("name = \"events\"", "name = \"events\"\nshards = 3")).expect("valid");
    assert_eq!(config.clone().only(&["events".to_owned()]).expect("known").relays.len(), 3);
    assert_eq!(config.clone().only(&["events#1".to_owned()]).expect("known").relays.len(), 1);
    let problems = config.only(&["events#3".to_owned()]).expect_err("there are three").to_string();
    assert!(problems.starts_with("no relay events#3 is configured; configured are: events"), "{problems}");
}

// Guarantee: shards.bad-configuration
#[test]
fn shards_that_would_break_the_order_or_do_nothing_are_refused() {
    let sharded = "name = \"events\"\nshards = 4";
    let sms = "name = \"sms\"\nshards = 4";
    let pending = "[relay.source.pending]\ntable = \"public.todos\"\nkey = [\"id\"]\ndue = \"at\"\nsent = \"sent\"";
    let stream = "[relay.source.stream]\ntable = \"public.bookings\"\n[relay.sink.kafka]";
    for (text, key, what) in [
        (
            with("name = \"events\"", sharded).replace("key = \"customer\"", ""),
            "relay[events].shards",
            "no key is named",
        ),
        (
            with("name = \"events\"", &format!("{sharded}\nshard_key = \"tenant\"")),
            "relay[events].shard_key",
            "rows of one customer, the sink's key, could be in several shards",
        ),
        (with("name = \"sms\"", sms), "relay[sms].shards", "no key is named"),
        (
            with("name = \"sms\"", &format!("{sms}\nshard_key = \"phone\""))
                .replace("from = ", "rate_per_second = 5\nfrom = "),
            "relay[sms].shards",
            "rate_per_second holds for one cursor",
        ),
        (
            with("name = \"sms\"", &format!("{sms}\nshard_key = \"tenant\"\non_poison = \"park_key\"")),
            "relay[sms].shard_key",
            "by which rows are parked, could be in several shards",
        ),
        (
            with("name = \"events\"", sharded).replacen(stream, &format!("{pending}\n[relay.sink.kafka]"), 1),
            "relay[events].shards",
            "have no order to be shared",
        ),
    ] {
        let problems = parse(&text).expect_err(what).to_string();
        assert!(problems.contains(key) && problems.contains(what), "{what}: {problems}");
    }
    let unordered = with("name = \"events\"", &format!("{sharded}\nshard_key = \"id\""));
    assert!(parse(&unordered.replace("key = \"customer\"", "unordered = true")).is_ok());
    assert!(parse(&with("name = \"sms\"", &format!("{sms}\nshard_key = \"phone\""))).is_ok());
}
