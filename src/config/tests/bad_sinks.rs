//! Sinks with one mistake each; see [`super::bad`].

use super::bad::judge;
use super::*;
use crate::relay::{Guarantee, Start};

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
        (KEY, "format = \"avro\"", at("format"), "not a word that is known here"),
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

const STREAM: &str = "[relay.source.stream]\ntable = \"a.b\"";
const GOOD_SQL: &str = "statement = \"SELECT app.f($1, $2)\"\nparameters = [\"id\", \"at\"]\n";

fn sql(more: &str, source: &str, sink: &str) -> String {
    format!("{GOOD}[[relay]]\nname = \"model\"\n{more}\n{source}\n[relay.sink.sql]\n{sink}")
}

#[test]
fn sql_sinks() {
    for (from, to, key, what) in [
        ("statement = \"SELECT app.f($1, $2)\"", "", "statement", "missing"),
        ("SELECT app.f($1, $2)", "", "statement", "empty"),
        ("SELECT app.f($1, $2)", "COMMIT", "statement", "not a statement that can run in the cursor's"),
        ("SELECT app.f($1, $2)", "-- SELECT\\nSET a = $1", "statement", "not a statement that can run in the cursor's"),
        ("SELECT app.f($1, $2)", "DO $$ $$", "statement", "not a statement that can run in the cursor's"),
        ("$2)", "$2); COMMIT", "statement", "more than one statement"),
        ("$2)", "$3)", "parameters", "the statement has $3, and 2 columns are named"),
        ("$2)", "$0, $2)", "parameters", "the statement has $0, and 2 columns are named"),
        ("$2)", "$1)", "parameters", "2 columns are named, and the statement has no $2"),
        ("parameters = [\"id\", \"at\"]", "", "statement", "the statement has $1, and 0 columns are named"),
        ("\"id\", \"at\"", "", "parameters", "names no column"),
        ("\"id\", \"at\"", "\"id\", \"id\"", "parameters", "names \"id\" twice"),
        ("parameters", "each = \"turn\"\nparameters", "each", "not a word that is known"),
        ("parameters", "timeout = \"1s\"\nparameters", "timeout", "unknown key here"),
    ] {
        let text = sql("", STREAM, &GOOD_SQL.replacen(from, to, 1));
        let problems = parse(&text).expect_err(to);
        let [one] = problems.list() else { panic!("{to}: {problems}") };
        assert_eq!(one.key, format!("relay[model].sink.sql.{key}"), "{to}");
        assert!(one.what.starts_with(what) && !one.fix.is_empty(), "{to}: {}", one.what);
    }
    for good in ["insert into a.b values ($1, $2);", "/* a */ (VALUES ($1, $2))", "CALL a.b($2, $1)", "MERGE $1 $2"] {
        let config = parse(&sql("", STREAM, &GOOD_SQL.replacen("SELECT app.f($1, $2)", good, 1))).expect(good);
        let relay = config.relays.last().expect("a relay");
        assert_eq!((relay.guarantee, relay.start), (Guarantee::InDatabase, Start::Beginning));
        assert_eq!(parse(&config.redacted()).expect("valid"), config);
    }
}

#[test]
fn a_statement_has_its_own_guarantee_and_is_for_streams() {
    assert!(parse(&sql("guarantee = \"in_database\"", STREAM, GOOD_SQL)).is_ok());
    for other in ["at_least_once", "at_most_once"] {
        let text = sql(&format!("guarantee = \"{other}\""), STREAM, GOOD_SQL);
        let told = parse(&text).expect_err(other).to_string();
        assert!(told.contains(&format!("relay[model].guarantee = \"{other}\": a statement and the advance")), "{told}");
        assert!(told.contains("fix: write \"in_database\", or remove the key"), "{told}");
    }
    let due = "[relay.source.pending]\ntable = \"a.b\"\nkey = [\"id\"]\ndue = \"at\"";
    let due = sql("", due, GOOD_SQL);
    let problems = parse(&due).expect_err("due work");
    let [one] = problems.list() else { panic!("{problems}") };
    assert_eq!(one.key, "relay[model].sink.sql");
    assert_eq!(one.what, "not available with [relay.source.pending]");
}

#[test]
fn email_sinks() {
    const GOOD_MAIL: &str = "server = \"smtp.example.com\"\nfrom = \"Shop <shop@example.com>\"\nto = \"{{ email }}\"\n\
                             [relay.sink.email.templates.welcome]\nsubject = \"Hello\"\ntext = \"{{ name }}\"\n";
    let relay = |sink: &str, start: &str| {
        format!(
            "{GOOD}[[relay]]\nname = \"mail\"\n{start}[relay.source.stream]\ntable = \"a.b\"\n\
             [relay.sink.email]\n{sink}"
        )
    };
    assert!(parse(&relay(GOOD_MAIL, "start = \"now\"\n")).is_ok());
    let problems = parse(&relay(GOOD_MAIL, "")).expect_err("it reaches people").to_string();
    assert!(problems.contains("relay[mail].start: missing"), "{problems}");
    let second =
        "[relay.sink.email.templates.other]\nsubject = \"x\"\nhtml = \"y\"\n[relay.sink.email.templates.welcome]";
    for (from, to, key, what) in [
        ("server = \"smtp.example.com\"\n", "", "server", "missing"),
        ("smtp.example.com", "https://smtp.example.com", "server", "not a host"),
        ("smtp.example.com", "smtp.example.com:25", "server", "not a host"),
        ("server", "port = 0\nserver", "port", "out of bounds"),
        ("server", "security = \"ssl\"\nserver", "security", "not a word that is known"),
        (
            "server",
            "security = \"none\"\nserver",
            "security",
            "mails, and perhaps a password, would go over the network",
        ),
        ("server", "username = \"relay\"\nserver", "password_file", "missing beside username"),
        ("server", "password_file = \"/run/p\"\nserver", "username", "missing beside password_file"),
        ("server", "hello_name = \"a b\"\nserver", "hello_name", "not the name of a domain"),
        ("server", "connections = 0\nserver", "connections", "out of bounds"),
        ("server", "timeout = \"10s\"\nserver", "timeout", "above 3/5 of turn.deadline"),
        ("from = \"Shop <shop@example.com>\"\n", "", "from", "missing"),
        ("Shop <shop@example.com>", "Shop, Inc <shop@example.com>", "from", "not a mailbox: its name has"),
        ("Shop <shop@example.com>", "{{ from }}", "from", "not a mailbox"),
        ("server", "reply_to = \"a@b.example, c@d.example\"\nserver", "reply_to", "not a mailbox"),
        ("to = \"{{ email }}\"", "to = \"{{ email\"", "to", "not a template"),
        ("server", "message_id_domain = \"a@b\"\nserver", "message_id_domain", "not the name of a domain"),
        ("[relay.sink.email.templates.welcome]", second, "template", "missing: there are several templates"),
        ("server", "template = \"welcom\"\nserver", "template", "no template has this name"),
        ("templates.welcome", "templates.\"a b\"", "templates.a b", "not a name of a template"),
        ("subject = \"Hello\"", "", "templates.welcome.subject", "missing"),
        ("\"Hello\"", "\"Hello\\nyou\"", "templates.welcome.subject", "has a control character"),
        ("text = \"{{ name }}\"", "", "templates.welcome.text", "missing: a mail needs text or html"),
        ("text", "text_file = \"/a\"\ntext", "templates.welcome.text_file", "the part is given twice"),
        ("subject", "body = \"x\"\nsubject", "templates.welcome.body", "unknown key here"),
    ] {
        let text = relay(&GOOD_MAIL.replacen(from, to, 1), "start = \"now\"\n");
        let problems = parse(&text).expect_err(to);
        let [one] = problems.list() else { panic!("{to}: {problems}") };
        assert_eq!(one.key, format!("relay[mail].sink.email.{key}"), "{to}");
        assert!(one.what.starts_with(what), "{to}: {}", one.what);
    }
    let without = relay(GOOD_MAIL.split("[relay.sink.email.templates").next().unwrap_or_default(), "start = \"now\"\n");
    assert!(parse(&without).expect_err("no template").to_string().contains("missing: a mail needs a template"));
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
