//! Files with one mistake each: exactly that one is reported, at its key, for its reason.

use super::*;

/// What stands in [`GOOD`], what stands there instead, the key that is reported, and the reason it begins with.
pub(super) type Case = (&'static str, &'static str, &'static str, &'static str);

pub(super) const TABLE: &str = "table = \"public.bookings\"";
const SERVERS: &str = "bootstrap_servers = \"127.0.0.1:9092\"";
pub(super) const EVENTS: &str = "name = \"events\"";
const URL: &str = "url = \"postgresql://relay@127.0.0.1:5432/app?sslmode=disable\"";

pub(super) fn judge(cases: &[Case]) {
    let mut wrong = Vec::new();
    for (from, to, key, what) in cases {
        match parse(&with(from, to)) {
            Ok(_) => wrong.push(format!("{to}: accepted")),
            Err(problems) => match problems.list() {
                [one] if one.key == *key && one.what.starts_with(what) && !one.fix.is_empty() => {}
                _ => wrong.push(format!("{to}:\n{problems}")),
            },
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn intake() {
    const FILE: &str = "[intake]\ntoken_file = \"/t\"\n";
    let with = |line: &str| -> &'static str { format!("{FILE}{line}\n[kafka]").leak() };
    judge(&[
        ("[kafka]", "[intake]\n[kafka]", "intake.token_file", "missing"),
        ("[kafka]", "[intake]\ntoken = \"hunter2\"\ntoken_file = \"/t\"\n[kafka]", "intake.token", "unknown key"),
        ("[kafka]", with("listen = \"9465\""), "intake.listen", "not an address to listen on"),
        ("[kafka]", with("body_limit = \"17MiB\""), "intake.body_limit", "out of bounds"),
        ("[kafka]", with("connections = 0"), "intake.connections", "out of bounds"),
        ("[kafka]", with("timeout = \"500ms\""), "intake.timeout", "out of bounds"),
        ("[kafka]", with("pool_size = 3"), "intake.pool_size", "unknown key here"),
    ]);
}

#[test]
fn telemetry() {
    let otlp = |url: &str| -> &'static str { format!("[telemetry]\notlp = \"{url}\"\n[kafka]").leak() };
    let with =
        |line: &str| -> &'static str { format!("[telemetry]\notlp = \"http://c:4318\"\n{line}\n[kafka]").leak() };
    judge(&[
        ("[kafka]", "[telemetry]\n[kafka]", "telemetry.otlp", "missing"),
        ("[kafka]", otlp("127.0.0.1:4318"), "telemetry.otlp", "not a URL"),
        ("[kafka]", otlp("grpc://127.0.0.1:4317"), "telemetry.otlp", "not an http or https URL"),
        ("[kafka]", otlp("http://u:hunter2@c:4318"), "telemetry.otlp", "credentials in a URL"),
        ("[kafka]", otlp("http://c:4318?key=hunter2"), "telemetry.otlp", "has a query"),
        ("[kafka]", otlp("http://c:4318/v1/traces"), "telemetry.otlp", "ends with /v1/traces"),
        ("[kafka]", with("sample = 1.1"), "telemetry.sample", "out of bounds"),
        ("[kafka]", with("sample = -1"), "telemetry.sample", "out of bounds"),
        ("[kafka]", with("sample = \"5%\""), "telemetry.sample", "a number is needed"),
        ("[kafka]", with("headers_file = \"\""), "telemetry.headers_file", "empty"),
        ("[kafka]", with("ca_fil = \"/c\""), "telemetry.ca_fil", "unknown key"),
        ("[kafka]", with("cert_file = \"/c\""), "telemetry.cert_file", "a certificate without its key"),
        ("[kafka]", with("token = \"hunter2\""), "telemetry.token", "unknown key"),
    ]);
}

#[test]
fn bad_collector_is_refused_with_key_value_and_fix() {
    let said = |url: &str| {
        let text = with("[kafka]", &format!("[telemetry]\notlp = \"{url}\"\n[kafka]"));
        parse(&text).expect_err("refused").to_string()
    };
    let problems = said("ftp://127.0.0.1:21");
    for part in ["telemetry.otlp", "ftp://127.0.0.1:21", "not an http or https URL", "http://127.0.0.1:4318"] {
        assert!(problems.contains(part), "{part} in {problems}");
    }
    for url in ["http://u:hunter2@c:4318", "http://hunter2@c:4318"] {
        assert!(!said(url).contains("hunter2"), "{}", said(url));
    }
}

#[test]
fn audit() {
    let with = |lines: &str| -> &'static str { format!("[audit]\n{lines}\n[kafka]").leak() };
    judge(&[
        ("[kafka]", with("keep = \"119m\""), "audit.keep", "out of bounds"),
        ("[kafka]", with("keep = \"366d\""), "audit.keep", "out of bounds"),
        ("[kafka]", with("keep = 7"), "audit.keep", "a duration is needed here, this is an integer"),
        ("[kafka]", with("keep = \"7 days\""), "audit.keep", "a duration has no unit"),
        ("[kafka]", with("enabled = false\nkeep = \"7d\""), "audit.keep", "nothing is recorded that could be kept"),
        (
            "[kafka]",
            with("keep = \"7d\"\n[retention]\ndead_letters = \"6d\""),
            "audit.keep",
            "rows that came late are told by their dead letters",
        ),
        (
            "[kafka]",
            with("keep = \"2h\"\n[retention]\ndead_letters = \"90m\""),
            "audit.keep",
            "rows that came late are told by their dead letters",
        ),
        ("[kafka]", with("kept = \"7d\""), "audit.kept", "unknown key"),
    ]);
    let told = parse(&GOOD.replacen("[kafka]", with("keep = \"1m\""), 1)).expect_err("refused").to_string();
    for part in ["audit.keep = \"1m\"", "write a duration from \"2h\" to \"8760h\""] {
        assert!(told.contains(part), "{part} in {told}");
    }
}

#[test]
fn sign_in_at_postgres() {
    judge(&[
        (
            "[kafka]",
            "cert_file = \"/c\"\nkey_file = \"/k\"\n[kafka]",
            "postgres.cert_file",
            "a certificate of the relay's own",
        ),
        ("[kafka]", "password_command = \"token\"\n[kafka]", "postgres.password_command", "an array is needed"),
        ("[kafka]", "password_command = []\n[kafka]", "postgres.password_command", "names no program"),
        ("[kafka]", "password_command = [\"\"]\n[kafka]", "postgres.password_command", "names no program"),
        ("[kafka]", "password_command = [\"a\", 1]\n[kafka]", "postgres.password_command", "an argument is an integer"),
        (
            "[kafka]",
            "password_file = \"/f\"\npassword_command = [\"a\"]\n[kafka]",
            "postgres.password_command",
            "the password is given twice",
        ),
        (
            URL,
            "url = \"postgres://u:p@h/d\"\npassword_command = [\"a\"]",
            "postgres.password_command",
            "the password is given twice",
        ),
    ]);
}

#[test]
fn postgres() {
    judge(&[
        (URL, "", "postgres.url", "no PostgreSQL server is named"),
        (URL, "url = \"\"", "postgres.url", "empty"),
        (URL, "url = 5", "postgres.url", "a string is needed here, this is an integer"),
        (URL, "url = \"mysql://h/db\"", "postgres.url", "not a PostgreSQL URL"),
        (URL, "url = \"host=h dbname=db\"", "postgres.url", "not a PostgreSQL URL"),
        (URL, "url = \"postgresql://h:x/db\"", "postgres.url", "not a PostgreSQL URL: invalid value for option `port`"),
        (URL, "url = \"postgresql:///db?hostaddr=127.0.0.1\"", "postgres.url", "hostaddr without host"),
        (URL, "url = \"postgresql:///db\"", "postgres.url", "no PostgreSQL server is named"),
        ("sslmode=disable", "sslmode=prefer", "postgres.url", "sslmode=prefer lets anybody"),
        ("sslmode=disable", "sslmode=allow", "postgres.url", "sslmode=allow lets anybody"),
        ("sslmode=disable", "sslmode=on", "postgres.url", "not a known sslmode"),
        ("sslmode=disable", "ssl_mode=disable", "postgres.url", "no parameter \"ssl_mode\""),
        ("sslmode=disable", "sslmode=disable&tcp_user_timeout=3", "postgres.url", "tcp_user_timeout follows"),
        ("sslmode=disable", "sslmode=disable&sslcert=a&sslkey=b", "postgres.url", "a certificate of the relay's own"),
        ("sslmode=disable", "sslcert=a", "postgres.url", "a certificate without its key"),
        (
            "sslmode=disable\"",
            "sslkey=a\"\ncert_file = \"/c\"",
            "postgres.cert_file",
            "the relay's certificate is given twice",
        ),
        ("sslmode=disable\"", "\"\nkey_file = \"/k\"", "postgres.key_file", "a certificate without its key"),
        ("127.0.0.1:5432/app", "%2Ftmp,h/app", "postgres.url", "a Unix socket and a host"),
        ("app?", "app?host=/tmp&hostaddr=10.0.0.1&", "postgres.url", "a Unix socket and a host"),
        (
            URL,
            "url = \"postgresql://u@%2Ftmp/db?require_auth=md5\"",
            "postgres.url",
            "require_auth beside a Unix socket",
        ),
        ("relay@127", "relay:hun/ter@127", "postgres.url", "user or password contain characters"),
        (
            URL,
            "url = \"postgres://u:p@h/d\"\npassword_file = \"/p\"",
            "postgres.password_file",
            "the password is given twice",
        ),
        ("[kafka]", "ca_file = \"/ca\"\n[kafka]", "postgres.ca_file", "a file of authorities, but"),
        ("sslmode=disable", "sslrootcert=/a\"\nca_file = \"/b", "postgres.ca_file", "the authorities are given twice"),
        ("[kafka]", "pool_size = 3\n[kafka]", "postgres.pool_size", "out of bounds"),
        ("[kafka]", "pool_size = -1\n[kafka]", "postgres.pool_size", "out of bounds"),
        ("[kafka]", "pool_size = \"10\"\n[kafka]", "postgres.pool_size", "an integer is needed"),
        ("[kafka]", "pool_size = 1.5\n[kafka]", "postgres.pool_size", "an integer is needed"),
        ("[kafka]", "pool_size = 99999999999999999999\n[kafka]", "postgres.pool_size", "out of bounds"),
        ("[kafka]", "pool_size = 5\n[kafka]", "postgres.pool_size", "too few for two turns at once"),
        ("[kafka]", "pool_sise = 5\n[kafka]", "postgres.pool_sise", "unknown key"),
        ("[kafka]", "bootstrap_servers = \"a\"\n[kafka]", "postgres.bootstrap_servers", "unknown key here"),
    ]);
}

#[test]
fn kafka_admin_and_the_rest() {
    judge(&[
        (SERVERS, "", "kafka.bootstrap_servers", "missing"),
        (
            SERVERS,
            "bootstrap_servers = [\"a\"]",
            "kafka.bootstrap_servers",
            "a string is needed here, this is an array",
        ),
        (SERVERS, "bootstrap_servers = \"a:x\"", "kafka.bootstrap_servers", "\"a:x\" has no port"),
        (SERVERS, "bootstrap_servers = \"a,\"", "kafka.bootstrap_servers", "\"\" names no host"),
        (SERVERS, "bootstrap_servers = \"kafka://a:1\"", "kafka.bootstrap_servers", "\"kafka://a:1\" names no host"),
        ("[kafka]\nbootstrap_servers = \"127.0.0.1:9092\"", "", "relay[events].sink.kafka", "no cluster is configured"),
        (
            SERVERS,
            "bootstrap_servers = \"a\"\nsasl_password_file = \"/no/such\"",
            "kafka.sasl_password_file",
            "/no/such cannot be read",
        ),
        (SERVERS, "bootstrap_servers = \"a\"\nproperties = 5", "kafka.properties", "a table is needed here"),
        ("[[relay]]", "[admin]\nlisten = \"localhost:1\"\n[[relay]]", "admin.listen", "not an address"),
        ("[[relay]]", "[admin]\nlisten = 9464\n[[relay]]", "admin.listen", "a string is needed"),
        ("[[relay]]", "[admin]\nport = 1\n[[relay]]", "admin.port", "unknown key"),
        ("[[relay]]", "[admin]\ntoken_file = 1\n[[relay]]", "admin.token_file", "a string is needed"),
        (
            "[[relay]]",
            "[admin]\ntoken_for_metrics = true\n[[relay]]",
            "admin.token_for_metrics",
            "no token is configured",
        ),
        (
            "name = \"sms\"",
            "name = \"sms\"\npreset = \"debezium_outbox\"",
            "relay[sms].preset",
            "a preset of [relay.sink.kafka]",
        ),
        (EVENTS, "name = \"events\"\npreset = \"debezium\"", "relay[events].preset", "not a word that is known"),
        ("[[relay]]", "[shutdown]\ngrace = \"20\"\n[[relay]]", "shutdown.grace", "a duration without a unit"),
        ("[[relay]]", "[shutdown]\ngrace = \"1h\"\n[[relay]]", "shutdown.grace", "out of bounds"),
        ("[[relay]]", "[postgress]\n[[relay]]", "postgress", "unknown key"),
        ("[[relay]]", "[[schedule]]\n[[relay]]", "schedule", "unknown key here"),
        ("[kafka]", "[admin]\n[admin]\n[kafka]", "admin", "this key stands here for the second time"),
        ("[kafka]", "nonsense\n[kafka]", "", "not valid TOML"),
    ]);
}

// Guarantee: config.kafka-properties
#[test]
fn properties_that_would_break_a_guarantee() {
    for (property, what) in [
        ("acks = 1", "a record counts as delivered only when"),
        ("request.required.acks = 0", "a record counts as delivered only when"),
        ("enable.idempotence = false", "without idempotence"),
        ("enable.gapless.guarantee = false", "without it records after a refused one"),
        ("transactional.id = \"x\"", "transactions are not available"),
        ("partitioner = \"random\"", "keys go to the partitions"),
        ("message.timeout.ms = 1", "a message that expires alone lets younger ones overtake it"),
        ("delivery.timeout.ms = 1", "a message that expires alone lets younger ones overtake it"),
        ("allow.auto.create.topics = true", "a mistyped topic would be created"),
        ("message.max.bytes = 1000", "it follows from the topic's own limit"),
        ("batch.size = 1000", "it follows from the topic's own limit"),
        ("max.in.flight = 6", "with more than 5 requests in flight"),
        ("max.in.flight.requests.per.connection = 6", "with more than 5 requests in flight"),
        ("queue.buffering.backpressure.threshold = 2", "the client takes no other number than 1"),
        ("retries = 3", "a counted retry gives up"),
        ("message.send.max.retries = 3", "a counted retry gives up"),
        ("bootstrap.servers = \"a\"", "the brokers would be given twice"),
        ("metadata.broker.list = \"a\"", "the brokers would be given twice"),
        ("queuing.strategy = \"lifo\"", "another strategy than fifo"),
        ("delivery.report.only.error = true", "without reports of success"),
        ("queue.buffering.max.messages = 0", "0 means a queue without bounds"),
        ("no.such.property = 1", "librdkafka has no such property"),
        ("linger.ms = \"soon\"", "librdkafka refuses this value"),
        ("compression.codec = [\"zstd\"]", "a property is a string, a number or a boolean"),
    ] {
        let text = with("[[relay]]", &format!("[kafka.properties]\n{property}\n[[relay]]"));
        let problems = parse(&text).expect_err(property);
        let [one] = problems.list() else { panic!("{property}: {problems}") };
        let name = property.split(" = ").next().expect("a name");
        assert_eq!(one.key, format!("kafka.properties.{name}"));
        assert!(one.what.starts_with(what), "{property}: {}", one.what);
        assert!(matches!(one.place, Place::Line(8, _)), "{property}: {:?}", one.place);
    }
}

#[test]
fn properties_against_each_other_and_the_deadline() {
    judge(&[
        (
            "[[relay]]",
            "[kafka.properties]\nlinger.ms = 1\nqueue.buffering.max.ms = 1\n[[relay]]",
            "kafka.properties.queue.buffering.max.ms",
            "linger.ms and queue.buffering.max.ms are two names",
        ),
        (
            "[[relay]]",
            "[kafka.properties]\nlinger.ms = 1\n\"linger.ms\" = 1\n[[relay]]",
            "kafka.properties.linger.ms",
            "this property stands here for the second time",
        ),
        (
            "[[relay]]",
            "[kafka.properties]\nlinger.ms = 4500\n[[relay]]",
            "relay[events].turn.time",
            "records wait 4500 ms (kafka.properties.linger.ms), but time and deadline of a turn leave only 4500ms",
        ),
    ]);
}
