//! What is right is understood, filled up with defaults, and printed without secrets.

use std::time::Duration;

use tokio_postgres::config::{Host, SslMode};

use super::*;
use crate::database::TlsMode;
use crate::relay::Start;
use crate::sink;
use crate::source::TableName;

fn load(text: &str, variables: &[(&str, &str)]) -> Config {
    Config::parse(text, "relay.toml", &environment(variables)).expect("valid")
}

#[test]
fn an_intake_is_opt_in_and_stands_on_the_loopback_interface() {
    assert_eq!(parse(GOOD).expect("valid").intake, None);
    let intake = load(&format!("{GOOD}\n[intake]\ntoken_file = \"/t\"\n"), &[("OUTBOX_RELAY__INTAKE__TIMEOUT", "2s")]);
    let intake = intake.intake.expect("configured");
    assert_eq!((intake.listen.to_string(), intake.body_limit), ("127.0.0.1:9465".to_owned(), 64 << 10));
    assert_eq!((intake.connections, intake.timeout), (2, Duration::from_secs(2)));
    let limits = intake.limits();
    assert!(limits.statement < intake.timeout, "PostgreSQL gives up first");
}

#[test]
fn spans_are_opt_in_and_shown_as_they_are_read() {
    assert_eq!(parse(GOOD).expect("valid").telemetry, None);
    let keys = "headers_file = \"/h\"\nca_file = \"/a\"\ncert_file = \"/c\"\nkey_file = \"/k\"\n";
    let section = format!("{GOOD}\n[telemetry]\notlp = \"https://c:4318/\"\n{keys}");
    let default = load(&section, &[]);
    assert_eq!(default.telemetry.as_ref().expect("configured").sample, 0.05);
    let all = load(&section, &[("OUTBOX_RELAY__TELEMETRY__SAMPLE", "1")]);
    assert_eq!(all.telemetry.as_ref().expect("configured").sample, 1.0);
    for config in [default, all] {
        assert_eq!(load(&config.redacted(), &[]).telemetry, config.telemetry);
    }
}

#[test]
fn what_is_recorded_is_kept_only_where_that_is_asked_for() {
    assert_eq!(parse(GOOD).expect("valid").audit, crate::relay::Audit { enabled: true, keep: None });
    let week = Some(Duration::from_secs(7 * 86_400));
    let section = load(&format!("{GOOD}\n[audit]\nkeep = \"7d\"\n"), &[]);
    let variable = load(GOOD, &[("OUTBOX_RELAY__AUDIT__KEEP", "168h")]);
    for config in [section, variable] {
        assert_eq!(config.audit.keep, week);
        assert!(config.relays.iter().all(|relay| relay.audit == config.audit));
        assert_eq!(load(&config.redacted(), &[]).audit, config.audit);
        let prints = |config: Config| config.relays.into_iter().map(|relay| relay.fingerprint).collect::<Vec<_>>();
        let without = prints(parse(GOOD).expect("valid"));
        assert_eq!(prints(config), without, "it changes nothing that a halt depends on");
    }
}

#[test]
fn defaults_are_filled_in() {
    let config = parse(GOOD).expect("valid");
    assert_eq!(config.postgres.pool_size, 10);
    assert_eq!(config.postgres.tls, TlsMode::Disable);
    assert_eq!(config.admin.listen.to_string(), "127.0.0.1:9464");
    assert_eq!(config.grace, Duration::from_secs(20));
    let [events, sms] = &config.relays[..] else { panic!("two relays") };
    assert_eq!(events.start, Start::Beginning);
    assert_eq!(*events.source.table(), TableName { schema: "public".into(), name: "bookings".into() });
    assert_eq!((events.turn.rows, events.turn.bytes), (20_000, 8 << 20));
    assert_eq!((events.turn.time, events.turn.deadline), (Duration::from_millis(500), Duration::from_secs(5)));
    assert_eq!(sms.turn.rows, 1);
    assert_eq!(sms.start, Start::Now);
    let sink::Config::Sms(sink) = &sms.sink else { panic!("sms") };
    assert_eq!(sink.timeout, Duration::from_secs(3));
    assert_eq!(sink.base_url, "https://api.twilio.com");
    assert_eq!(sms.secret_files, [std::path::PathBuf::from("/run/token")]);
}

#[test]
fn what_is_shown_reads_back_as_the_same() {
    let everything = "u:p%40@h:1,[::1]:2/d%20b?sslmode=require&hostaddr=127.0.0.1,::1&options=-c%20a%3Db&application_name=x\
        &connect_timeout=3&target_session_attrs=read-write&channel_binding=require&sslnegotiation=direct&keepalives=0\
        &keepalives_idle=9&keepalives_interval=8&keepalives_retries=7";
    let url = with("relay@127.0.0.1:5432/app?sslmode=disable", everything);
    let shown = parse(&url).expect("valid").redacted().replace("***", "p%40");
    assert_eq!(parse(&shown).expect("valid"), parse(&url).expect("valid"));
    for config in [parse(GOOD), parse(REFERENCE)] {
        let config = config.expect("valid");
        assert_eq!(parse(&config.redacted()).expect("valid"), config);
    }
}

// Guarantee: secrets.hidden
#[test]
fn secrets_are_never_shown() {
    let text = with("relay@127", "relay:hunter2@127")
        .replace("auth_token_file = \"/run/token\"", "auth_token = \"hunter2\"")
        .replace(
            "[[relay]]\nname = \"events\"",
            "[kafka.properties]\nsasl.password = \"hunter2\"\n[[relay]]\nname = \"events\"",
        )
        + "[[relay]]\nname = \"hook\"\nstart = \"now\"\nsource.stream.table = \"a.b\"\n[relay.sink.http]\nurl = \"https://h/\"\nheaders = { Authorization = \"Bearer hunter2\" }\n";
    let config = parse(&text).expect("valid");
    assert_eq!(config.postgres.connection.get_password(), Some(b"hunter2".as_slice()));
    for shown in [config.redacted(), format!("{config:?}"), format!("{:?}", config.kafka)] {
        assert!(!shown.contains("hunter2"), "{shown}");
    }
    assert_eq!(config.redacted().matches("***").count(), 4);
}

#[test]
fn the_fingerprint_follows_the_relay_its_secrets_and_its_cluster_only() {
    let prints = |text: &str| -> Vec<String> {
        parse(text).expect("valid").relays.into_iter().map(|relay| relay.fingerprint).collect()
    };
    let before = prints(GOOD);
    assert!(before.iter().all(|print| print.len() == 64));
    assert_eq!(prints(&with("[kafka]", "[admin]\nlisten = \"[::1]:1\"\n[kafka]")), before);
    let after = prints(&with("127.0.0.1:9092", "127.0.0.1:9093"));
    assert!(after[0] != before[0] && after[1] == before[1]);
    let after = prints(&with("auth_token_file = \"/run/token\"", "auth_token = \"a\""));
    let other = prints(&with("auth_token_file = \"/run/token\"", "auth_token = \"b\""));
    assert!(after[0] == before[0] && after[1] != before[1] && after[1] != other[1]);
}

#[test]
fn a_webhook_sends_one_row_a_turn_and_its_secrets_belong_to_the_fingerprint() {
    let text = "[[relay]]\nname = \"hook\"\nstart = \"now\"\nsource.stream.table = \"a.b\"\n[relay.sink.webhook]\n\
                url = \"https://h/{{ id }}\"\nsecret_files = [\"/run/new\", \"/run/old\"]\nallow = [\"::1/128\"]\n";
    let config = parse(&format!("{GOOD}{text}")).expect("valid");
    let hook = &config.relays[2];
    let sink::Config::Webhook(sink) = &hook.sink else { panic!("webhook") };
    assert_eq!((sink.request.method.as_str(), sink.body_limit, hook.turn.rows), ("POST", 1 << 20, 1));
    assert_eq!(hook.secret_files, ["/run/new", "/run/old"].map(std::path::PathBuf::from));
    assert!(config.redacted().contains("secret_files = [\"/run/new\", \"/run/old\"]"), "paths are no secrets");
    assert_eq!(parse(&config.redacted()).expect("valid"), config);
    let other = parse(&format!("{GOOD}{}", text.replace("::1/128", "::2/128"))).expect("valid");
    assert_ne!(other.relays[2].fingerprint, hook.fingerprint, "an allowed range is a fix of a halt");
}

#[test]
fn an_email_relay_sends_one_row_a_turn_and_its_files_belong_to_the_fingerprint() {
    let text = "[[relay]]\nname = \"mail\"\nstart = \"now\"\nsource.stream.table = \"a.b\"\n[relay.sink.email]\n\
                server = \"127.0.0.1\"\nsecurity = \"tls\"\nusername = \"u\"\npassword_file = \"/run/p\"\n\
                from = \"Shop <shop@b\u{fc}cher.example>\"\nto = \"{{ email }}\"\n\
                [relay.sink.email.templates.welcome]\nsubject = \"s\"\ntext_file = \"/t\"\nhtml = \"<p>\"\n";
    let config = parse(&format!("{GOOD}{text}")).expect("valid");
    let mail = &config.relays[2];
    let sink::Config::Email(sink) = &mail.sink else { panic!("email") };
    assert_eq!((sink.server.port, sink.connections, mail.turn.rows), (465, 2, 1));
    assert_eq!(sink.message_id_domain, "xn--bcher-kva.example");
    assert_eq!(mail.secret_files, ["/run/p", "/t"].map(std::path::PathBuf::from));
    assert_eq!(parse(&config.redacted()).expect("valid"), config);
    let other = parse(&format!("{GOOD}{}", text.replace("<p>", "<b>"))).expect("valid");
    assert_ne!(other.relays[2].fingerprint, mail.fingerprint, "a fixed template is a fix of a halt");
}

// Guarantee: config.variables
#[test]
fn the_environment_wins_over_the_file_and_fills_what_it_leaves_open() {
    let variables = [
        ("OUTBOX_RELAY__POSTGRES__POOL_SIZE", "12"),
        ("OUTBOX_RELAY__KAFKA__BOOTSTRAP_SERVERS", "other:1"),
        ("OUTBOX_RELAY__KAFKA__PROPERTIES__SASL_PASSWORD", "hunter2"),
        ("OUTBOX_RELAY__ADMIN__LISTEN", "0.0.0.0:80"),
        ("OUTBOX_RELAY__SHUTDOWN__GRACE", "3s"),
        ("OUTBOX_RELAY_PORT", "tcp://set by Kubernetes"),
        ("OUTBOX_RELAY_INTAKE_PORT", "tcp://10.0.0.1:80"),
        ("OUTBOX_RELAY_INTAKE_PORT_80_TCP_ADDR", "10.0.0.1"),
        ("OUTBOX_RELAY_INTAKE_SERVICE_HOST", "10.0.0.1"),
        ("OUTBOX_RELAY_ADMIN_SERVICE_PORT_HTTP", "80"),
        ("OUTBOX_RELAY_SOMETHING", "is warned of"),
        ("DATABASE_URL", "postgresql://not.this.one/db"),
        ("PGPASSWORD", "hunter3"),
        ("PGUSER", "nobody"),
    ];
    let config = load(GOOD, &variables);
    assert_eq!(config.postgres.pool_size, 12);
    assert_eq!(config.postgres.connection.get_user(), Some("relay"));
    assert_eq!(config.postgres.connection.get_password(), Some(b"hunter3".as_slice()));
    assert_eq!(config.postgres.connection.get_hosts(), [Host::Tcp("127.0.0.1".into())]);
    let kafka = config.kafka.expect("configured");
    assert_eq!(kafka.bootstrap_servers, "other:1");
    assert_eq!(kafka.properties["sasl.password"], "hunter2");
    assert_eq!(config.admin.listen.to_string(), "0.0.0.0:80");
    assert_eq!(config.grace, Duration::from_secs(3));
}

#[test]
fn libpq_variables_alone_name_a_server() {
    let variables =
        [("PGHOST", "/tmp/pg"), ("PGPORT", "5555"), ("PGDATABASE", "app"), ("PGUSER", "me"), ("PGPASSWORD", "")];
    let config = load("", &variables);
    assert_eq!(config.postgres.connection.get_hosts(), [Host::Unix("/tmp/pg".into())]);
    assert_eq!(config.postgres.connection.get_ports(), [5555]);
    assert_eq!(config.postgres.connection.get_ssl_mode(), SslMode::Disable);
    assert_eq!(config.postgres.tls, TlsMode::VerifyFull);
    assert_eq!(config.postgres.connection.get_password(), None);
    assert!(config.relays.is_empty());
}

// Guarantee: secrets.tls-default
#[test]
fn tls_is_verified_unless_said_otherwise() {
    let config = load("", &[("DATABASE_URL", "postgres://u@h/db"), ("PGSSLROOTCERT", "/ca.pem")]);
    assert_eq!(config.postgres.tls, TlsMode::VerifyFull);
    assert_eq!(config.postgres.connection.get_ssl_mode(), SslMode::Require);
    assert_eq!(config.postgres.ca_file, Some("/ca.pem".into()));
    let config = load("", &[("DATABASE_URL", "postgres://u@h/db"), ("PGSSLMODE", "require")]);
    assert_eq!(config.postgres.tls, TlsMode::Require);
    let config = load("", &[("DATABASE_URL", "postgres://u@h/db?sslmode=verify-ca"), ("PGSSLMODE", "disable")]);
    assert_eq!(config.postgres.tls, TlsMode::VerifyCa);
}

#[test]
fn properties_may_be_written_with_and_without_quotes() {
    let properties =
        "[kafka.properties]\nsecurity.protocol = \"SSL\"\n\"linger.ms\" = 2\nsocket.keepalive.enable = true\n";
    let config = load(&with("[[relay]]", &format!("{properties}[[relay]]")), &[]);
    let properties = config.kafka.expect("configured").properties;
    assert_eq!(properties["security.protocol"], "SSL");
    assert_eq!(properties["linger.ms"], "2");
    assert_eq!(properties["socket.keepalive.enable"], "true");
}

#[test]
fn start_may_be_a_toml_instant() {
    for start in ["2026-11-21T08:00:00Z", "\"2026-11-21T09:00:00+01:00\"", "2026-11-21T08:00:00Z # comment"] {
        let config = load(&with("start = \"now\"", &format!("start = {start}")), &[]);
        let Start::At(at) = config.relays[1].start else { panic!("an instant") };
        assert_eq!(at.to_string(), "2026-11-21T08:00:00.000000Z");
    }
}

// Guarantee: horizon.allow-loss
#[test]
fn the_rule_that_loses_rows_needs_the_environment_s_word() {
    let text = with("name = \"events\"", "name = \"events\"\nlatency_window = \"9ms\"").replacen(
        "table = \"public.bookings\"",
        "table = \"public.bookings\"\nhorizon = \"window\"",
        1,
    );
    assert!(parse(&text).is_err());
    assert_eq!(stream(&load(&text, &[("OUTBOX_RELAY_ALLOW_LOSS", "1")])).horizon, crate::source::RuleChoice::Window);
}

#[test]
fn only_some_relays_may_be_chosen() {
    let config = parse(GOOD).expect("valid");
    assert_eq!(config.clone().only(&["sms".to_owned()]).expect("known").relays.len(), 1);
    assert_eq!(config.clone().only(&[]).expect("all").relays.len(), 2);
    let said = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        config.clone().only(&names).expect_err("unknown").to_string()
    };
    let configured = "is configured; configured are: events, sms";
    assert_eq!(said(&["evnts"]), format!("no relay evnts {configured}; did you mean \"events\"?"));
    assert_eq!(said(&["events", "nosuch", "none"]), format!("no relay nosuch or none {configured}"));
}

#[test]
fn a_password_file_of_kafka_is_read() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "hunter2\n").expect("written");
    let line = format!("[kafka]\nsasl_password_file = {:?}", file.path().display().to_string());
    let config = load(&with("[kafka]", &line), &[]);
    assert_eq!(config.kafka.expect("configured").properties["sasl.password"], "hunter2");
}

fn stream(config: &Config) -> &crate::source::Stream {
    match &config.relays[0].source {
        crate::source::Config::Stream(stream) => stream,
        crate::source::Config::Pending(_) | crate::source::Config::Requests(_) | crate::source::Config::Schedule(_) => {
            panic!("a stream")
        }
    }
}

#[test]
fn preset_sets_what_is_not_written() {
    let relay = |more: &str| {
        let text = format!(
            "[postgres]\nurl = \"postgresql://u@h/d\"\n[kafka]\nbootstrap_servers = \"h:1\"\n[[relay]]\nname = \"r\"\n{more}\n\
             [relay.source.stream]\ntable = \"public.outboxevent\""
        );
        let mut config = parse(&text).expect("valid");
        match config.relays.remove(0).sink {
            crate::sink::Config::Kafka(kafka) => kafka,
            other => panic!("{other:?}"),
        }
    };
    let written = "[relay.sink.kafka]\ntopic = \"outbox.event.{{ aggregatetype }}\"\nkey = \"aggregateid\"\n\
                   payload = { column = \"payload\" }";
    let preset = "preset = \"debezium_outbox\"";
    assert_eq!(relay(preset), relay(written));
    let own = relay(&format!("{preset}\n[relay.sink.kafka]\ntopic = \"mine\"\npayload = {{ columns = [\"id\"] }}"));
    assert_eq!(
        (own.topic.as_str(), own.key.as_deref(), own.payload),
        ("mine", Some("aggregateid"), crate::sink::kafka::Payload::Columns(vec!["id".to_owned()]))
    );
}
