//! The text that a user reads, to the letter.

use super::*;

const MISTAKES: &str = r#"[postgres]
url = "postgresql://relay:hunter2@127.0.0.1:5432/app?sslmode=prefer"
pool_sise = 5
pasword = "hunter2"

[kafka]
bootstrap_servers = "127.0.0.1:9092"
[kafka.properties]
acks = 1

[[relay]]
name = "events"
guarantee = "transactional"
deadline = "5s"
shards = 4
[relay.source.stream]
table = "bookings"
[relay.turn]
rows = 2O000
time = 500
[relay.sink.kafka]
topic = "bookings"

[[relay]]
name = "booking_sms"
name = "again"
[relay.source.stream]
table = "public.bookings"
[relay.turn]
deadline = "4s"
[relay.sink.sms]
provider = "twillio"
account_sid = "AC1"
auth_token = 12345678
from = "+15550000000"
to = "{{ phone"
text = "Booking {{ id }}"
timeout = "3s"
"#;

const TOLD: &str = r#"18 problems in the configuration
relay.toml:2:7: postgres.url = "postgresql://relay:***@127.0.0.1:5432/app?sslmode=prefer": sslmode=prefer lets anybody on the way switch TLS off unseen
    fix: write sslmode=verify-full, verify-ca, require or disable
relay.toml:3:1: postgres.pool_sise = 5: unknown key
    fix: did you mean "pool_size"?
relay.toml:4:1: postgres.pasword: unknown key
    fix: remove it; known here: url, password_file, password_command, ca_file, cert_file, key_file, pool_size
relay.toml:9:8: kafka.properties.acks = 1: a record counts as delivered only when all in-sync replicas have it
    fix: remove it
relay.toml:13:13: relay[events].guarantee = "transactional": not available in this version
    fix: write "at_least_once" or "at_most_once"
relay.toml:14:1: relay[events].deadline = "5s": unknown key here
    fix: it belongs to [relay.turn]
relay.toml:15:10: relay[events].shards = 4: shards keep the order of rows with equal keys, and no key is named
    fix: set the sink's key, or write shard_key = "id" where no order is needed
relay.toml:17:9: relay[events].source.stream.table = "bookings": a table without its schema could mean another one tomorrow
    fix: write the schema too, for example "public.bookings"
relay.toml:19:8: relay[events].turn.rows = "2O000": an integer is needed here, this is a string
    fix: write a whole number from 1 to 1000000
relay.toml:20:8: relay[events].turn.time = 500: a duration is needed here, this is an integer
    fix: write a string with a unit, from "1ms" to "2m"
relay.toml:24:1: relay[booking_sms].start: missing: this sink reaches people, who would get every row there ever was
    fix: write start = "now", or "beginning" if that is meant
relay.toml:26:1: relay[booking_sms].name = "again": this key stands here for the second time
    fix: remove one of the two
relay.toml:32:12: relay[booking_sms].sink.sms.provider = "twillio": not a word that is known here
    fix: did you mean "twilio"?
relay.toml:34:14: relay[booking_sms].sink.sms.auth_token = ***: a string is needed here, this is an integer
    fix: put the value in quotation marks
relay.toml:36:6: relay[booking_sms].sink.sms.to = "{{ phone": not a template: unexpected end of input, expected end of variable block
    fix: write columns as {{ column }}; literal braces as {{ '{{' }}
relay.toml:38:11: relay[booking_sms].sink.sms.timeout = "3s": above 3/5 of turn.deadline, which is 2400ms
    fix: write at most "2400ms", or [relay.turn] deadline = "5s"
OUTBOX_RELAY__POSTGRES__POOL_SIZE: postgres.pool_size = "2": out of bounds
    fix: write a whole number from 4 to 1000
OUTBOX_RELAY__POSTGRE__URL: postgre.url: names no key that a variable can set
    fix: did you mean OUTBOX_RELAY__POSTGRES__…?"#;

// Guarantee: config.all-problems
#[test]
fn all_problems_of_a_file_and_its_environment_are_told_together() {
    let variables = [("OUTBOX_RELAY__POSTGRES__POOL_SIZE", "2"), ("OUTBOX_RELAY__POSTGRE__URL", "hunter2")];
    let problems = Config::parse(MISTAKES, "relay.toml", &environment(&variables)).expect_err("full of mistakes");
    let (shown, expected): (Vec<_>, Vec<_>) =
        (problems.to_string().lines().map(str::to_owned).collect(), TOLD.lines().collect());
    assert_eq!(shown, expected);
}

#[test]
fn after_a_syntax_error_only_what_is_certain_is_told() {
    let text = "[postgres]\npool_size = 1\n[kafka\n[admin]\nlisten = 5\n[[relay]]\n";
    assert_eq!(
        parse(text).expect_err("wrong").to_string(),
        "2 problems in the configuration\n\
         relay.toml:2:13: postgres.pool_size = 1: out of bounds\n    fix: write a whole number from 4 to 1000\n\
         relay.toml:3:7: not valid TOML: unclosed table, expected `]`\n    \
         fix: correct the line; what follows it was not checked"
    );
}

// Guarantee: config.variables
#[test]
fn variables_are_named() {
    for (name, value, shown) in [
        (
            "DATABASE_URL",
            "postgres://u:hunter2@h/db?sslmode=allow",
            "DATABASE_URL: postgres.url = \"postgres://u:***@h/db?sslmode=allow\": sslmode=allow lets anybody on the way \
             switch TLS off unseen",
        ),
        (
            "OUTBOX_RELAY__ADMIN__LISTEN",
            "9464",
            "OUTBOX_RELAY__ADMIN__LISTEN: admin.listen = \"9464\": not an address to listen on",
        ),
        ("OUTBOX_RELAY__ADMIN__PORT", "9464", "OUTBOX_RELAY__ADMIN__PORT: admin.port: unknown key"),
        ("OUTBOX_RELAY__RELAY__NAME", "x", "OUTBOX_RELAY__RELAY__NAME: relay.name: relays cannot be set by variables"),
        (
            "OUTBOX_RELAY__KAFKA__PROPERTIES__ACKS",
            "0",
            "OUTBOX_RELAY__KAFKA__PROPERTIES__ACKS: kafka.properties.acks = \"0\": a record",
        ),
        (
            "OUTBOX_RELAY_POSTGRES_URL",
            "hunter2",
            "OUTBOX_RELAY_POSTGRES_URL: postgres.url: sets nothing: the name needs two underscores where it has one\n    \
             fix: write OUTBOX_RELAY__POSTGRES__URL",
        ),
        (
            "OUTBOX_RELAY__POSTGRES_PASSWORD_FILE",
            "x",
            "OUTBOX_RELAY__POSTGRES_PASSWORD_FILE: postgres_password_file: names no key that a variable can set\n    \
             fix: write OUTBOX_RELAY__POSTGRES__PASSWORD_FILE",
        ),
        (
            "OUTBOX_RELAY_KAFKA_PROPERTIES_SASL_PASSWORD",
            "hunter2",
            "OUTBOX_RELAY_KAFKA_PROPERTIES_SASL_PASSWORD: kafka.properties.sasl_password: sets nothing: the name needs two \
             underscores where it has one\n    fix: write OUTBOX_RELAY__KAFKA__PROPERTIES__SASL_PASSWORD",
        ),
        ("PGSSLMODE", "prefer", "PGSSLMODE: postgres.url = \"prefer\": sslmode=prefer lets anybody"),
        ("PGPORT", "many", "PGPORT: postgres.url = \"many\": no port"),
    ] {
        let variables = if name == "DATABASE_URL" { vec![(name, value)] } else { vec![("PGHOST", "h"), (name, value)] };
        let problems = Config::parse("", "relay.toml", &environment(&variables)).expect_err(name).to_string();
        assert!(problems.contains(&format!("\n{shown}")), "{problems}");
        assert!(!problems.contains("hunter2"), "{problems}");
    }
}

#[test]
fn without_a_file_the_environment_is_named() {
    assert_eq!(
        Config::read("", None, &Environment::new(), &Kinds::default()).expect_err("nothing is configured").to_string(),
        "1 problem in the configuration\nenvironment: postgres.url: no PostgreSQL server is named\n    \
         fix: write url = \"postgresql://user@host:5432/database\", or set DATABASE_URL or PGHOST"
    );
}

#[test]
fn where_no_file_is_and_none_is_named_that_is_told_first() {
    let told = Config::load(None, &Environment::new()).expect_err("nothing is configured").to_string();
    assert!(
        told.starts_with(
            "2 problems in the configuration\nconfiguration: no configuration file: there is no outbox-relay.toml in /"
        ),
        "{told}"
    );
    assert!(
        told.contains(
            "name the file by --config FILE or OUTBOX_RELAY_CONFIG\nconfiguration: postgres.url: no PostgreSQL"
        ),
        "{told}"
    );
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let variables = environment(&[("OUTBOX_RELAY_CONFIG", "/no/such/relay.toml")]);
    assert_eq!(
        Config::load(None, &variables).expect_err("no such file").to_string(),
        "1 problem in the configuration\n/no/such/relay.toml: cannot be read: No such file or directory (os error 2)\n    \
         fix: name the configuration by --config FILE or OUTBOX_RELAY_CONFIG"
    );
}

// Guarantee: secrets.hidden
/// Cuts the reference at every byte and drops every line: no text may make the reader panic, and none may make it print
/// a secret.
#[test]
fn no_text_makes_it_panic_or_tell() {
    let secret =
        with("relay@127", "relay:hunter2@127").replace("auth_token_file = \"/run/token\"", "auth_token = \"hunter2\"");
    for at in (0..secret.len()).filter(|at| secret.is_char_boundary(*at)) {
        for text in [secret[..at].to_owned(), format!("{}{}", &secret[..at], &secret[at + 1..])] {
            if let Err(problems) = parse(&text) {
                assert!(!problems.to_string().contains("hunter2"), "{text}\n{problems}");
            }
        }
    }
}
