//! `[relay.sink.custom]`: what the program has registered is made, and nobody's secrets are printed.

use std::time::Duration;

use super::*;
use crate::relay::Guarantee;
use crate::sink::custom::{CustomSink, Delivery, Description, Stopped};
use crate::sink::{self, InvalidSetting};

/// Takes every table that has no key `broken`.
struct Quiet(Description);

#[async_trait::async_trait]
impl CustomSink for Quiet {
    fn description(&self) -> Description {
        self.0.clone()
    }

    async fn publish(&self, _messages: &[Delivery<'_>], _deadline: std::time::Instant) -> Result<(), Stopped> {
        Ok(())
    }
}

fn kinds() -> Kinds {
    let mut kinds = Kinds::default();
    kinds.add("quiet", |table| match table.parse::<toml::Table>()?.get("broken") {
        Some(_) => Err(InvalidSetting { key: "broken.part[1]".to_owned(), problem: "is of no use".to_owned() }),
        None => Ok(Quiet(Description::in_batches("the void"))),
    });
    kinds.add("unix_socket", |_| Ok(Quiet(Description::in_batches("unix:/run/receiver.sock"))));
    kinds.add("person", |_| {
        Ok(Quiet(Description::one_by_one("a person").remembering_keys_for(Duration::from_secs(60))))
    });
    kinds.add("slow", |_| Ok(Quiet(Description::in_batches("a snail").at_most_every(Duration::from_secs(2)))));
    kinds
}

const STREAM: &str = "start = \"now\"\n[relay.source.stream]\ntable = \"public.bookings\"\n";

fn relay(rest: &str, sink: &str) -> String {
    format!(
        "[postgres]\nurl = \"postgresql://relay@127.0.0.1:5432/app\"\n[[relay]]\nname = \"own\"\n{rest}[relay.sink.custom]\n{sink}\n"
    )
}

pub(super) fn parse_with_kinds(text: &str) -> Result<Config, Problems> {
    Config::parse_with(text, "relay.toml", &Environment::new(), &kinds())
}

#[track_caller]
fn refused(text: &str, expected: &[&str]) {
    let problems = parse_with_kinds(text).expect_err(text).to_string();
    for part in expected {
        assert!(problems.contains(part), "{part:?} is not in: {problems}");
    }
}

#[test]
fn a_registered_kind_gets_its_keys_as_they_are() {
    let own =
        "kind = \"quiet\"\nat = 2026-11-21T08:00:00Z\nn = [1, 2.5, true]\n[relay.sink.custom.sub]\n\"a b\" = \"x\"";
    let config = parse_with_kinds(&relay(STREAM, own)).expect("valid");
    let sink::Config::Custom(custom) = &config.relays[0].sink else { panic!("custom") };
    let expected = "at = \"2026-11-21T08:00:00Z\"\nn = [1, 2.5, true]\n[sub]\n\"a b\" = \"x\"";
    assert_eq!(custom.table.parse::<toml::Table>().expect("is a table"), expected.parse().expect("TOML"));
    assert_eq!((custom.kind, config.relays[0].sink.target().as_str()), ("quiet", "the void"));
    assert_eq!(config.relays[0].sink.circuit(), "quiet the void");
    assert_eq!(config.relays[0].guarantee, Guarantee::AtLeastOnce);
    assert_eq!(config.relays[0].turn.rows, turn::DEFAULT_ROWS);
    let person = parse_with_kinds(&relay(STREAM, "kind = \"person\"")).expect("valid");
    assert_eq!(person.relays[0].turn.rows, turn::DEFAULT_ROWS_ONE_BY_ONE);
}

#[test]
fn a_kind_that_nobody_registered_is_refused_by_name() {
    refused(&relay(STREAM, ""), &["relay[own].sink.custom.kind: missing"]);
    refused(&relay(STREAM, "kind = 7"), &["a string is needed here"]);
    refused(
        &relay(STREAM, "kind = \"quite\""),
        &[
            "kind = \"quite\": no sink of this kind is registered",
            "did you mean \"quiet\"?",
            "person, quiet, slow, unix_socket",
        ],
    );
    refused(&relay(STREAM, "kind = \"http\""), &["write [relay.sink.http]"]);
    let stock = Config::parse(&relay(STREAM, "kind = \"quiet\""), "relay.toml", &Environment::new());
    let problems = stock.expect_err("nothing is registered").to_string();
    assert!(problems.contains("this program has no sinks of its own"), "{problems}");
    assert!(problems.contains("docs/howto/own-sink.md"), "{problems}");
}

#[test]
fn what_a_sink_refuses_is_told_where_it_stands_and_without_its_value() {
    let text = relay(STREAM, "kind = \"quiet\"\n[relay.sink.custom.broken]\npart = [\"hunter2\", \"hunter3\"]");
    refused(&text, &["relay.toml:11:8: relay[own].sink.custom.broken.part[1]: is of no use", "the sink quiet takes"]);
    assert!(!parse_with_kinds(&text).expect_err("refused").to_string().contains("hunter"));
}

#[test]
fn start_is_written_and_a_guarantee_of_the_database_is_not() {
    let stream = STREAM.replace("start = \"now\"\n", "");
    refused(&relay(&stream, "kind = \"quiet\""), &["relay[own].start: missing: this sink reaches people"]);
    let in_database = format!("guarantee = \"in_database\"\n{STREAM}");
    refused(&relay(&in_database, "kind = \"quiet\""), &["only [relay.sink.sql] changes this database"]);
    let shards = format!("shards = 2\nshard_key = \"id\"\n{STREAM}");
    refused(&relay(&shards, "kind = \"slow\""), &["rate_per_second holds for one cursor"]);
    assert_eq!(parse_with_kinds(&relay(&shards, "kind = \"quiet\"")).expect("valid").relays.len(), 2);
}

#[test]
fn every_source_but_the_databases_own_work_takes_it() {
    let pending = "[relay.source.pending]\ntable = \"public.todos\"\nkey = [\"id\"]\ndue = \"at\"\n";
    let requests = "on_unknown = \"resend\"\n[relay.source.requests]\ntemplates = [\"welcome\"]\n";
    for source in [STREAM, pending, &format!("guarantee = \"at_most_once\"\n{pending}"), "[relay.source.schedule]\n"] {
        parse_with_kinds(&relay(source, "kind = \"quiet\"")).expect("valid");
    }
    parse_with_kinds(&relay(requests, "kind = \"person\"")).expect("its receiver remembers keys");
    refused(&relay(requests, "kind = \"quiet\""), &["resend: nothing says for how long a key is remembered"]);
    refused(&relay(&requests.replace("resend", "ask"), "kind = \"person\""), &["ask: this sink does not say where"]);
}

const SECRETS: &str = "kind = \"quiet\"\nwindow = \"5s\"\nport = 25\npin = 12345678\ntoken = \"hunter2\"\napi_key = 22\n\
    dsn = \"amqp://u:hunter2@h\"\npath = \"/hunter2\"\nlist = [\"hunter2\"]\nauth = { user = \"hunter2\", n = 7 }";

#[test]
fn no_text_of_its_table_is_printed() {
    let config = parse_with_kinds(&relay(STREAM, SECRETS)).expect("valid");
    let shown = config.redacted();
    for secret in ["hunter2", "12345678", "22\n", "n = 7"] {
        assert!(!shown.contains(secret) && !format!("{config:?}").contains(secret), "{secret}: {shown}");
    }
    for plain in [
        "[relay.sink.custom]\nkind = \"quiet\"\n# target: the void\n",
        "window = \"5s\"",
        "port = 25",
        "list = [\"***\"]",
    ] {
        assert!(shown.contains(plain), "{plain}: {shown}");
    }
    assert!(!format!("{:?}", config.relays[0].sink).contains("hunter2"));
    let misplaced = relay(STREAM, &SECRETS.replace("quiet", "quite"));
    assert!(!parse_with_kinds(&misplaced).expect_err("unknown kind").to_string().contains("hunter2"));
}

#[test]
fn replicas_see_another_key_and_not_another_secret() {
    let of = |from: &str, to: &str| {
        let config = parse_with_kinds(&relay(STREAM, &SECRETS.replace(from, to))).expect("valid");
        (config.relays[0].delivers.clone(), config.relays[0].fingerprint.clone())
    };
    let (delivers, fingerprint) = of("", "");
    assert_ne!(of("path = \"/hunter2\"", "path = \"/other\"").0, delivers);
    for (from, to) in
        [("token = \"hunter2\"", "token = \"hunter3\""), ("n = 7", "n = 8"), ("api_key = 22", "api_key = 23")]
    {
        let (same, other) = of(from, to);
        assert_eq!(same, delivers, "{from}");
        assert_ne!(other, fingerprint, "{from}");
    }
}
