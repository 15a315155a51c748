//! Lanes of rows that become due and of requests.

use super::*;
use crate::source::Config as Source;

/// A relay of this source and sink; `turn` is added below `[relay.turn]`.
fn relay(source: &str, turn: &str, sink: &str) -> String {
    format!(
        "[postgres]\nurl = \"postgresql://relay@127.0.0.1:5432/app?sslmode=disable\"\n[kafka]\nbootstrap_servers = \"h:1\"\n\
         [[relay]]\nname = \"a\"\n[relay.source.{source}\n[relay.turn]\n{turn}\n[relay.sink.{sink}\n"
    )
}

const DUE: &str = "pending]\ntable = \"public.todos\"\nkey = [\"id\"]\ndue = \"due\"";
const REQUESTS: &str = "requests]\ntemplates = [\"t\"]";
const HTTP: &str = "http]\nurl = \"http://h/x\"";
const KAFKA: &str = "kafka]\ntopic = \"t\"\npayload = { row = true }";

fn sms(to: &str) -> String {
    format!(
        "sms]\nprovider = \"twilio\"\naccount_sid = \"AC1\"\nauth_token_file = \"/run/token\"\nfrom = \"+15550000000\"\n\
         to = \"{to}\"\ntext = \"x\""
    )
}

#[test]
fn lane_of_a_job_is_the_named_column_or_whom_it_goes_to() {
    for source in [DUE, REQUESTS] {
        for (turn, sink, expected) in [
            ("in_flight = 20", HTTP.to_owned(), None),
            ("in_flight = 20\nlane = \"customer\"", HTTP.to_owned(), Some("customer")),
            ("in_flight = 20", sms("{{ phone }}"), Some("phone")),
            ("in_flight = 20", sms("+15551234567"), None),
            ("in_flight = 20\nlane = \"customer\"", sms("+{{ country }}{{ phone }}"), Some("customer")),
        ] {
            let text = relay(source, turn, &sink);
            let config = parse(&text).unwrap_or_else(|problems| panic!("{text}\n{problems}"));
            let lanes = match &config.relays[0].source {
                Source::Pending(pending) => pending.lanes.clone(),
                Source::Requests(requests) => requests.lanes.clone(),
                Source::Stream(_) | Source::Schedule(_) => None,
            };
            assert_eq!(lanes.expect("lanes").column.as_deref(), expected, "{text}");
            let again = parse(&config.redacted().replace("***", "x")).expect("what is shown can be read");
            assert_eq!(again.relays[0].source, config.relays[0].source);
            // Replicas with and without lanes keep no order together.
            let plain = parse(&relay(source, "", &sink)).expect("valid");
            let more = parse(&text.replace("= 20", "= 30")).expect("valid");
            assert_ne!(config.relays[0].delivers, plain.relays[0].delivers, "{text}");
            assert_eq!(config.relays[0].delivers, more.relays[0].delivers, "{text}");
        }
    }
    let keyed = relay(DUE, "in_flight = 20", &format!("{KAFKA}\nkey = \"customer\""));
    let config = parse(&keyed).unwrap_or_else(|problems| panic!("{problems}"));
    let Source::Pending(pending) = &config.relays[0].source else { panic!("due rows") };
    assert_eq!(pending.lanes.as_ref().and_then(|lanes| lanes.column.as_deref()), Some("customer"));
}

/// A position keeps the order of a stream, whichever replica has lanes; only where no row may be sent twice one without them must not come between.
#[test]
fn streams_with_and_without_lanes_wait_for_each_other_under_at_most_once_alone() {
    let of = |guarantee: &str, turn: &str| {
        let text = relay("stream]\ntable = \"public.bookings\"", turn, &sms("{{ phone }}"));
        let named = format!("name = \"a\"\nstart = \"now\"\nguarantee = \"{guarantee}\"");
        let config = parse(&text.replacen("name = \"a\"", &named, 1)).unwrap_or_else(|problems| panic!("{problems}"));
        config.relays[0].delivers.clone()
    };
    for (guarantee, waits) in [("at_least_once", false), ("at_most_once", true)] {
        let lanes = of(guarantee, "in_flight = 20");
        assert_eq!(of(guarantee, "") != lanes, waits, "{guarantee}");
        assert_eq!(of(guarantee, "in_flight = 1"), of(guarantee, ""), "{guarantee}: one at a time is none");
        for alike in ["in_flight = 30", "in_flight = 20\nwindow = 500", "in_flight = 20\nlane_hold = \"5m\""] {
            assert_eq!(of(guarantee, alike), lanes, "{guarantee}: {alike}");
        }
        let other = of(guarantee, "in_flight = 20\nlane = \"customer\"");
        assert_ne!(other, lanes, "{guarantee}: another order");
    }
}

#[test]
fn what_lanes_of_jobs_cannot_be_together_with_is_refused_by_name() {
    let (due, requests) = (format!("{DUE}\nin_flight = 5"), format!("{REQUESTS}\nin_flight = 5"));
    let keyed = format!("{KAFKA}\nkey = \"customer\"");
    for (source, turn, sink, key, what) in [
        (due.as_str(), "in_flight = 20", HTTP, "relay[a].source.pending.in_flight", "a second number"),
        (&requests, "in_flight = 20", HTTP, "relay[a].source.requests.in_flight", "a second number"),
        (DUE, "in_flight = 1", HTTP, "relay[a].turn.in_flight", "rows of [relay.source.pending] have lanes"),
        (REQUESTS, "in_flight = 1", HTTP, "relay[a].turn.in_flight", "rows of [relay.source.requests] have lanes"),
        (DUE, "in_flight = 20\nlane_hold = \"5m\"", HTTP, "relay[a].turn.lane_hold", "no key of"),
        (DUE, "in_flight = 20", &sms("+{{ country }}{{ phone }}"), "relay[a].turn.lane", "missing: whom a message"),
        (DUE, "in_flight = 20", &sms("{{ phone | trim }}"), "relay[a].turn.lane", "missing: whom a message"),
        (DUE, "in_flight = 20", KAFKA, "relay[a].turn.in_flight", "the records have no key"),
        (DUE, "in_flight = 20\nlane = \"customer\"", &keyed, "relay[a].turn.lane", "a record of Kafka has its key"),
        (DUE, "in_flight = 20", "stdout]", "relay[a].turn.in_flight", "messages of the sink stdout are not sent"),
        (DUE, "lane = \"customer\"", HTTP, "relay[a].turn.lane", "no key is parked, and nothing is sent side by side"),
        ("schedule]", "in_flight = 20", HTTP, "relay[a].turn.in_flight", "a schedule has one action at a time"),
    ] {
        let text = relay(source, turn, sink);
        let problems = parse(&text).expect_err(&text);
        match problems.list() {
            [one] if one.key == key && one.what.starts_with(what) && !one.fix.is_empty() => {}
            _ => panic!("{text}\n{problems}"),
        }
    }
}
