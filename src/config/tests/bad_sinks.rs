//! Sinks with one mistake each; see [`super::bad`].

use super::bad::judge;
use super::*;

const TOPIC: &str = "topic = \"bookings\"";
const TOKEN: &str = "auth_token_file = \"/run/token\"";
const KEY: &str = "key = \"customer\"";

#[test]
fn kafka_sinks() {
    judge(&[
        (TOPIC, "", "relay[events].sink.kafka.topic", "missing"),
        (TOPIC, "topic = \"a b\"", "relay[events].sink.kafka.topic", "Kafka has no topics of such a name"),
        (TOPIC, "topic = \"a.{{ b\"", "relay[events].sink.kafka.topic", "not a template"),
        (KEY, "key = \"a\"\nunordered = true", "relay[events].sink.kafka.unordered", "a key keeps the order"),
        (KEY, "unordered = \"yes\"", "relay[events].sink.kafka.unordered", "a boolean is needed"),
        (KEY, "payload = \"row\"", "relay[events].sink.kafka.payload", "a table is needed here"),
        (KEY, "payload = {}", "relay[events].sink.kafka.payload", "0 of row, column and columns"),
        (KEY, "payload = { row = true, column = \"a\" }", "relay[events].sink.kafka.payload", "2 of row, column"),
        (KEY, "payload = { row = false }", "relay[events].sink.kafka.payload.row", "says what the payload is not"),
        (KEY, "payload = { columns = [] }", "relay[events].sink.kafka.payload.columns", "names no column"),
        (
            KEY,
            "payload = { columns = [\"a\", \"a\"] }",
            "relay[events].sink.kafka.payload.columns",
            "names \"a\" twice",
        ),
        (KEY, "payload = { colum = \"a\", row = true }", "relay[events].sink.kafka.payload.colum", "unknown key"),
        (KEY, "headers = { id = \"a\" }", "relay[events].sink.kafka.headers", "the header \"id\" is the relay's own"),
        (KEY, "headers = { a = 5 }", "relay[events].sink.kafka.headers", "a is an integer, a string is needed"),
        (KEY, "timeout = \"3s\"", "relay[events].sink.kafka.timeout", "unknown key here"),
    ]);
}

#[test]
fn formats_of_kafka_sinks() {
    let at = |key: &str| -> &'static str { format!("relay[events].sink.kafka.{key}").leak() };
    let events = |lines: &str| -> &'static str {
        format!("{KEY}\nformat = \"cloudevents\"\n[relay.sink.kafka.cloudevents]\ntype = \"a\"\n{lines}").leak()
    };
    let bare = "key = \"customer\"\nformat = \"cloudevents\"";
    let with_type = |line: &str| -> &'static str { format!("{bare}\ncloudevents = {{ type = \"a\" }}\n{line}").leak() };
    judge(&[
        (KEY, "format = \"thrift\"", at("format"), "not a word that is known here"),
        (KEY, "format = \"cloudevent\"", at("format"), "not a word that is known here"),
        (KEY, bare, at("cloudevents.type"), "missing"),
        (KEY, "cloudevents = { type = \"a\" }", at("cloudevents"), "this section counts for format = \"cloudevents\""),
        (KEY, events("mode = \"batch\""), at("cloudevents.mode"), "not a word that is known here"),
        (KEY, events("source = \"a b\""), at("cloudevents.source"), "is no URI reference by RFC 3986"),
        (KEY, events("source = \"/{{ a\""), at("cloudevents.source"), "not a template"),
        (KEY, events("dataschema = \"/a.json\""), at("cloudevents.dataschema"), "is no absolute URI by RFC 3986"),
        (KEY, events("subject = \"a\\nb\""), at("cloudevents.subject"), "has a control character"),
        (
            KEY,
            events("extensions = { \"tenant_id\" = \"a\" }"),
            at("cloudevents.extensions"),
            "\"tenant_id\" is no name",
        ),
        (KEY, events("extensions = { time = \"a\" }"), at("cloudevents.extensions"), "\"time\" is no name"),
        (KEY, events("extensions = { tenant = \"{{ a\" }"), at("cloudevents.extensions"), "tenant: not a template"),
        (KEY, events("datacontenttype = \"json\""), at("cloudevents.datacontenttype"), "no media type of a payload"),
        (
            KEY,
            events("datacontenttype = \"application/cloudevents+json\""),
            at("cloudevents.datacontenttype"),
            "no media type of a payload",
        ),
        (KEY, events("datacontenttype = \"text/plain\""), at("cloudevents.datacontenttype"), "this payload is JSON"),
        (KEY, with_type("payload = { column = \"a\" }"), at("cloudevents.datacontenttype"), "missing"),
        (KEY, with_type("headers = { ce_tenant = \"a\" }"), at("headers"), "the header \"ce_tenant\" is one of format"),
        (KEY, with_type("headers = { content-type = \"a\" }"), at("headers"), "the header \"content-type\" is one of"),
        (KEY, events("time = \"a\""), at("cloudevents.time"), "unknown key"),
    ]);
}

#[test]
fn change_events_of_kafka_sinks() {
    let at = |key: &str| -> &'static str { format!("relay[events].sink.kafka.{key}").leak() };
    let events =
        "key = \"customer\"\nformat = \"cloudevents\"\ncloudevents = { type = \"a\" }\ndebezium = { name = \"a\" }";
    let debezium = |lines: &str| -> &'static str { format!("{KEY}\nformat = \"debezium\"\n{lines}").leak() };
    judge(&[
        (KEY, "debezium = { name = \"a\" }", at("debezium"), "this section counts for format = \"debezium\""),
        (KEY, events, at("debezium"), "this section counts for format = \"debezium\""),
        (
            KEY,
            debezium("cloudevents = { type = \"a\" }"),
            at("cloudevents"),
            "this section counts for format = \"cloudevents\"",
        ),
        (
            KEY,
            debezium("payload = { column = \"a\" }"),
            at("payload"),
            "one column: an event of Debezium has the columns",
        ),
        (KEY, debezium("debezium = { name = \" \" }"), at("debezium.name"), "empty"),
        (KEY, debezium("debezium = { schema = true }"), at("debezium.schema"), "unknown key"),
    ]);
}

#[test]
fn sms_sinks() {
    judge(&[
        ("provider = \"twilio\"", "provider = \"twillio\"", "relay[sms].sink.sms.provider", "not a word that is known"),
        ("account_sid = \"AC1\"", "", "relay[sms].sink.sms.account_sid", "missing"),
        ("account_sid = \"AC1\"", "account_sid = \"../a\"", "relay[sms].sink.sms.account_sid", "not an account's SID"),
        (TOKEN, "", "relay[sms].sink.sms.auth_token_file", "missing"),
        (
            TOKEN,
            "auth_token = \"a\"\nauth_token_file = \"b\"",
            "relay[sms].sink.sms.auth_token",
            "the token is given twice",
        ),
        ("to = \"{{ phone }}\"", "to = \"{{ phone \"", "relay[sms].sink.sms.to", "not a template"),
        (
            TOKEN,
            "auth_token_file = \"b\"\ntimeout = \"4s\"",
            "relay[sms].sink.sms.timeout",
            "above 3/5 of turn.deadline, which is 3s",
        ),
        (TOKEN, "auth_token_file = \"b\"\ntimeout = 3", "relay[sms].sink.sms.timeout", "a duration is needed"),
        (TOKEN, "auth_token_file = \"b\"\nrate_per_second = 0", "relay[sms].sink.sms.rate_per_second", "out of bounds"),
        (
            TOKEN,
            "auth_token_file = \"b\"\nrate_per_second = nan",
            "relay[sms].sink.sms.rate_per_second",
            "out of bounds",
        ),
        (
            TOKEN,
            "auth_token_file = \"b\"\nbase_url = \"ftp://a\"",
            "relay[sms].sink.sms.base_url",
            "not an http or https URL",
        ),
        (
            TOKEN,
            "auth_token_file = \"b\"\nbase_url = \"http://{{ a }}\"",
            "relay[sms].sink.sms.base_url",
            "not a fixed address",
        ),
        (
            TOKEN,
            "auth_token_file = \"b\"\nbase_url = \"http://a:b@c\"",
            "relay[sms].sink.sms.base_url",
            "credentials in a URL",
        ),
    ]);
}

#[test]
fn http_and_other_sinks() {
    const SINK: &str = "[relay.sink.kafka]\ntopic = \"bookings\"\nkey = \"customer\"";
    const HOOK: &str = "start = \"now\"\n[relay.source.stream]\ntable = \"a.b\"\n[relay.sink.http]\n";
    judge(&[
        (SINK, "", "relay[events].sink", "missing: a relay needs a sink"),
        (SINK, "[relay.sink.stdout]\nx = 1", "relay[events].sink.stdout.x", "unknown key"),
        (SINK, "[relay.sink.kafca]\ntopic = \"a\"", "relay[events].sink.kafca", "unknown key"),
        (KEY, "key = \"a\"\n[relay.sink.stdout]", "relay[events].sink.stdout", "a second sink beside kafka"),
    ]);
    for (lines, key, what) in [
        ("", "url", "missing"),
        ("url = \"example.com\"", "url", "not an http or https URL"),
        ("url = \"https:///x\"", "url", "names no host"),
        ("url = \"https://u:hunter2@h/\"", "url", "credentials in a URL"),
        ("url = \"https://h/{{\"", "url", "not a template"),
        ("url = \"https://h/\"\nmethod = \"GET\"", "method", "not a word that is known"),
        ("url = \"https://h/\"\nbody = \"{% if %}\"", "body", "not a template"),
        ("url = \"https://h/\"\nheaders = { \"a b\" = \"c\" }", "headers.a b", "not a name of an HTTP header"),
        ("url = \"https://h/\"\nheaders = { Idempotency-Key = \"c\" }", "headers.Idempotency-Key", "this header is"),
        (
            "url = \"https://h/\"\nheaders = { Authorization = \"hunter2 {{\" }",
            "headers.Authorization",
            "not a template",
        ),
        ("url = \"https://h/\"\ntimeout = \"3001ms\"", "timeout", "above 3/5 of turn.deadline"),
    ] {
        let text = format!("{GOOD}[[relay]]\nname = \"hook\"\n{HOOK}{lines}\n");
        let problems = parse(&text).expect_err(lines);
        let [one] = problems.list() else { panic!("{lines}: {problems}") };
        assert_eq!(one.key, format!("relay[hook].sink.http.{key}"), "{lines}");
        assert!(one.what.starts_with(what), "{lines}: {}", one.what);
        assert!(!problems.to_string().contains("hunter2"), "{problems}");
    }
}

#[test]
fn webhook_sinks() {
    const GOOD_HOOK: &str = "url = \"https://h/{{ id }}\"\nsecret_file = \"/run/hook\"\n";
    let relay = |sink: &str, start: &str| {
        format!(
            "{GOOD}[[relay]]\nname = \"hook\"\n{start}[relay.source.stream]\ntable = \"a.b\"\n\
             [relay.sink.webhook]\n{sink}"
        )
    };
    assert!(parse(&relay(GOOD_HOOK, "start = \"now\"\n")).is_ok());
    let problems = parse(&relay(GOOD_HOOK, "")).expect_err("it reaches people").to_string();
    assert!(problems.contains("relay[hook].start: missing"), "{problems}");
    for (from, to, key, what) in [
        ("secret_file = \"/run/hook\"", "", "secret_file", "missing"),
        ("secret_file", "secret_files = [\"a\"]\nsecret_file", "secret_files", "the secrets are given twice"),
        ("secret_file = \"/run/hook\"", "secret_files = []", "secret_files", "names 0 files"),
        ("secret_file = \"/run/hook\"", "secret_files = [\"a\", \"b\", \"c\"]", "secret_files", "names 3 files"),
        ("secret_file = \"/run/hook\"", "secret_files = [\"a\", \"a\"]", "secret_files", "names the same file twice"),
        ("secret_file = \"/run/hook\"", "secret_files = \"a\"", "secret_files", "an array is needed here"),
        ("url", "method = \"PATCH\"\nurl", "method", "not a word that is known"),
        ("url", "headers = { Webhook-Id = \"a\" }\nurl", "headers.Webhook-Id", "this header is the relay's own"),
        ("url", "body_limit = \"65MiB\"\nurl", "body_limit", "out of bounds"),
        ("url", "body_limit = 1000\nurl", "body_limit", "a size is needed here"),
        ("url", "allow = \"10.0.0.0/8\"\nurl", "allow", "an array is needed here"),
        ("url", "allow = [\"10.0.0.1\"]\nurl", "allow", "\"10.0.0.1\" is no range of addresses"),
        ("url", "allow = [\"localhost\"]\nurl", "allow", "\"localhost\" is no range"),
        ("url", "allow = [\"10.0.0.0/33\"]\nurl", "allow", "\"10.0.0.0/33\" is no range"),
        ("url", "allow = [\"10.1.2.3/16\"]\nurl", "allow", "\"10.1.2.3/16\" has bits set behind its first 16"),
        ("url", "allow = [\"::ffff:10.0.0.0/104\"]\nurl", "allow", "\"::ffff:10.0.0.0/104\" is IPv4 in the form of"),
        ("url", "allow = [\"169.254.169.254/32\"]\nurl", "allow", "\"169.254.169.254/32\" is where clouds give out"),
        ("url", "allow = [\"fd00:ec2::254/128\"]\nurl", "allow", "\"fd00:ec2::254/128\" is where clouds give out"),
    ] {
        let text = relay(&GOOD_HOOK.replacen(from, to, 1), "start = \"now\"\n");
        let problems = parse(&text).expect_err(to);
        let [one] = problems.list() else { panic!("{to}: {problems}") };
        assert_eq!(one.key, format!("relay[hook].sink.webhook.{key}"), "{to}");
        assert!(one.what.starts_with(what), "{to}: {}", one.what);
    }
}

#[test]
fn a_command_is_no_receiver_of_rows() {
    const SINK: &str = "[relay.sink.command.programs.p]\nprogram = \"/bin/true\"\n[kafka]";
    for source in [
        "start = \"now\"\n[relay.source.stream]\ntable = \"public.t\"",
        "[relay.source.pending]\ntable = \"public.t\"\nkey = [\"id\"]\ndue = \"at\"",
    ] {
        let text = with("[kafka]", &format!("[[relay]]\nname = \"c\"\n{source}\n{SINK}"));
        let problems = parse(&text).expect_err(source);
        let [one] = problems.list() else { panic!("{problems}") };
        assert_eq!(one.key, "relay[c].sink.command");
        assert!(one.what.starts_with("a command is started by a schedule"), "{}", one.what);
        assert!(one.fix.contains("[relay.source.schedule]"), "{}", one.fix);
    }
}

#[test]
fn change_events_are_of_the_rows_of_a_stream() {
    let due = "[relay.source.pending]\ntable = \"public.t\"\nkey = [\"id\"]\ndue = \"at\"";
    let sink = "[relay.sink.kafka]\ntopic = \"t\"\nformat = \"debezium\"\nunordered = true\n[kafka]";
    let problems = parse(&with("[kafka]", &format!("[[relay]]\nname = \"c\"\n{due}\n{sink}"))).expect_err("due work");
    let [one] = problems.list() else { panic!("{problems}") };
    assert_eq!(one.key, "relay[c].sink.kafka.format");
    assert!(
        one.what.starts_with("an event of Debezium is of a row") && one.fix.contains("[relay.source.stream]"),
        "{one:?}"
    );
}
