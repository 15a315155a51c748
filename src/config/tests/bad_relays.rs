//! The same of what stands in `[[relay]]`.

use super::bad::{EVENTS, TABLE, judge};
use super::*;

#[test]
fn parked_keys_and_filters() {
    judge(&[
        (
            EVENTS,
            "name = \"events\"\non_poison = \"park_key\"\nguarantee = \"at_most_once\"",
            "relay[events].on_poison",
            "not available with guarantee",
        ),
        (
            TABLE,
            "table = \"public.bookings\"\nwhere = \"status = 1\"",
            "relay[events].source.stream.where",
            "a string, a table",
        ),
        (
            TABLE,
            "table = \"public.bookings\"\nwhere = { a = [] }",
            "relay[events].source.stream.where",
            "a: an empty list",
        ),
        (
            TABLE,
            "table = \"public.bookings\"\nwhere = { a = 1.5 }",
            "relay[events].source.stream.where",
            "a is a float",
        ),
        (EVENTS, "name = \"events\"\npark_keys = 7", "relay[events].park_keys", "no key is parked"),
    ]);
}

#[test]
fn lanes() {
    const SMS: &str = "name = \"sms\"";
    let of_sms = |more: &str| -> &'static str { format!("[relay.turn]\n{more}\n[relay.sink.sms]").leak() };
    judge(&[
        (EVENTS, "name = \"events\"\nturn.in_flight = 50", "relay[events].turn.in_flight", "Kafka takes many records"),
        ("[relay.sink.sms]", of_sms("in_flight = 1001"), "relay[sms].turn.in_flight", "out of bounds"),
        ("[relay.sink.sms]", of_sms("in_flight = 0"), "relay[sms].turn.in_flight", "out of bounds"),
        ("[relay.sink.sms]", of_sms("lane_hold = \"5m\""), "relay[sms].turn.lane_hold", "nothing is sent side by side"),
        ("[relay.sink.sms]", of_sms("window = 500"), "relay[sms].turn.window", "nothing is sent side by side"),
        (
            "[relay.sink.sms]",
            of_sms("in_flight = 20\nrows = 5"),
            "relay[sms].turn.rows",
            "below in_flight, which is 20",
        ),
        ("[relay.sink.sms]", of_sms("in_flight = 2\nwindow = 5"), "relay[sms].turn.window", "out of bounds"),
        ("[relay.sink.sms]", of_sms("lane = \"customer\""), "relay[sms].turn.lane", "no key is parked, and nothing"),
        (
            SMS,
            "name = \"sms\"\nshards = 2\nshard_key = \"customer\"\nturn.in_flight = 2",
            "relay[sms].turn.in_flight",
            "not available with shards",
        ),
    ]);
}

#[test]
fn relays() {
    judge(&[
        (EVENTS, "", "relay[#1].name", "missing"),
        (EVENTS, "name = \"a#1\"", "relay[a#1].name", "not a name of a relay"),
        (EVENTS, "name = \"ä\"", "relay[ä].name", "not a name of a relay"),
        (EVENTS, "name = 5", "relay[#1].name", "a string is needed"),
        (EVENTS, "name = \"sms\"", "relay[sms].name", "a second relay of this name"),
        (EVENTS, "name = events", "relay[events].name", "a value without quotation marks"),
        (EVENTS, "name = \"events\"\nname = \"b\"", "relay[events].name", "this key stands here for the second time"),
        (
            EVENTS,
            "name = \"events\"\nguarantee = \"exactly_once\"",
            "relay[events].guarantee",
            "not a word that is known",
        ),
        (EVENTS, "name = \"events\"\nguarantee = \"deduplicated\"", "relay[events].guarantee", "this is for requests"),
        (EVENTS, "name = \"events\"\nguarantee = \"in_database\"", "relay[events].guarantee", "only [relay.sink.sql]"),
        (
            EVENTS,
            "name = \"events\"\nguarantee = \"transactional\"",
            "relay[events].guarantee",
            "not available in this",
        ),
        (EVENTS, "name = \"events\"\non_poison = \"stop\"", "relay[events].on_poison", "not a word that is known"),
        (EVENTS, "name = \"events\"\nshards = 0", "relay[events].shards", "out of bounds"),
        (EVENTS, "name = \"events\"\nshards = 65", "relay[events].shards", "out of bounds"),
        (EVENTS, "name = \"events\"\ncolour = 4", "relay[events].colour", "unknown key"),
        (EVENTS, "name = \"events\"\ndeadline = \"5s\"", "relay[events].deadline", "unknown key here"),
        (
            EVENTS,
            "name = \"events\"\nlatency_window = \"5\"",
            "relay[events].latency_window",
            "a duration without a unit",
        ),
        (EVENTS, "name = \"events\"\nlatency_window = \"5m\"", "relay[events].latency_window", "out of bounds"),
        (EVENTS, "name = \"events\"\nstart = \"yesterday\"", "relay[events].start", "neither a known word nor"),
        (EVENTS, "name = \"events\"\nstart = 2026-11-21", "relay[events].start", "neither a known word nor"),
        (EVENTS, "name = \"events\"\nstart = 5", "relay[events].start", "a string is needed"),
        ("start = \"now\"", "", "relay[sms].start", "missing: this sink reaches people"),
        (EVENTS, "name = \"events\"\nturn = 5", "relay[events].turn", "a table is needed here"),
    ]);
}

#[test]
fn sources() {
    judge(&[
        (TABLE, "", "relay[events].source.stream.table", "missing"),
        (TABLE, "table = \"bookings\"", "relay[events].source.stream.table", "a table without its schema"),
        (TABLE, "table = \"a.b.c\"", "relay[events].source.stream.table", "more than schema and table"),
        (TABLE, "table = 'a.\"b'", "relay[events].source.stream.table", "a quotation mark is not closed"),
        (TABLE, "table = \"a.b\"\nid = \"\"", "relay[events].source.stream.id", "empty"),
        (TABLE, "table = \"a.b\"\nid = \"created_at\"", "relay[events].source.stream.id", "id and created_at are both"),
        (
            TABLE,
            "table = \"a.b\"\ntime_zone = \"a;b\"",
            "relay[events].source.stream.time_zone",
            "no name of a time zone",
        ),
        (
            TABLE,
            "table = \"a.b\"\nhorizon = \"write\"",
            "relay[events].source.stream.horizon",
            "not a word that is known",
        ),
        (
            TABLE,
            "table = \"a.b\"\nid = \"0123456789012345678901234567890123456789012345678901234567890123\"",
            "relay[events].source.stream.id",
            "longer than a column's name",
        ),
        (
            "[relay.source.stream]\ntable = \"public.bookings\"",
            "[relay.source.pending]\ntable = \"a.b\"\ndue = \"x\"",
            "relay[events].source.pending.key",
            "missing",
        ),
        (
            "[relay.source.stream]\ntable = \"public.bookings\"",
            "[relay.source.pending]\ntable = \"outbox.message\"\nkey = [\"id\"]\ndue = \"created_at\"",
            "relay[events].source.pending.table",
            "outbox.message is read as a stream",
        ),
    ]);
}

#[test]
fn turns_and_pauses() {
    let cases = [
        ("turn", "rows = 0", "rows", "out of bounds"),
        ("turn", "rows = \"many\"", "rows", "an integer is needed"),
        ("turn", "rows = 2O000", "rows", "an integer is needed"),
        ("turn", "bytes = 8388608", "bytes", "a size is needed here, this is an integer"),
        ("turn", "bytes = \"8MB\"", "bytes", "a size has no unit \"MB\""),
        ("turn", "bytes = \"8\"", "bytes", "a size without a unit"),
        ("turn", "bytes = \"2GiB\"", "bytes", "out of bounds"),
        ("turn", "time = 500", "time", "a duration is needed here, this is an integer"),
        ("turn", "time = \"0.5s\"", "time", "a duration has no unit \".5s\""),
        ("turn", "time = \"5s\"", "time", "a turn would still read at its deadline (5s)"),
        ("turn", "deadline = \"5\"", "deadline", "a duration without a unit"),
        ("turn", "deadline = \"5sec\"", "deadline", "a duration has no unit \"sec\""),
        ("turn", "deadline = \"200ms\"", "deadline", "out of bounds"),
        ("turn", "deadline = \"3m\"", "deadline", "out of bounds"),
        ("turn", "deadline = \"500ms\"", "deadline", "not above turn.time, which is 500ms unless written"),
        ("turn", "row = 5", "row", "unknown key"),
        ("poll", "min = \"300ms\"", "min", "above max, which is 200ms"),
        ("poll", "max = \"500us\"", "max", "below min, which is 1ms unless written"),
        ("poll", "min = \"0s\"", "min", "out of bounds"),
        ("poll", "standby = \"2m\"", "standby", "out of bounds"),
        ("poll", "stand_by = \"2s\"", "stand_by", "unknown key"),
        ("poll", "notify = \"yes\"", "notify", "a boolean is needed"),
    ];
    for (section, line, key, what) in cases {
        let text = with("[relay.sink.kafka]", &format!("[relay.{section}]\n{line}\n[relay.sink.kafka]"));
        let problems = parse(&text).expect_err(line);
        let [one] = problems.list() else { panic!("{line}: {problems}") };
        assert_eq!(one.key, format!("relay[events].{section}.{key}"), "{line}");
        assert!(one.what.starts_with(what), "{line}: {}", one.what);
    }
}
