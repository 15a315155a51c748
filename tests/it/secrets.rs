//! Secrets stay secret: in logs of every level, errors, metrics, verbs, tables and command lines, whether the servers
//! accept them or not.

use outbox_relay::config::{Config, Environment};
use outbox_testkit::kafka::{BrokerOptions, Listener, RealBroker};
use outbox_testkit::postgres::{Auth, Options, Postgres};
use tokio_postgres::Client;

use crate::support::gateway::{Gateway, Mood};
use crate::support::outside::{get, listener};
use crate::support::{CLOCK, PATIENCE, Process, eventually, ids};

/// Each is found by its own word, encoded or not.
const POSTGRES: &str = "canaryPostgres";
const KAFKA: &str = "canaryKafka";
const SMS: &str = "canarySms";
const HEADER: &str = "canaryHeader";
const QUERY: &str = "canaryQuery";
/// "canaryS" in the three ways that base64 may cut it, as Basic authentication would show it.
const BASE64: [&str; 3] = ["Y2FuYXJ5U21", "NhbmFyeVNtc", "jYW5hcnlTbX"];

struct Stage {
    postgres: Postgres,
    owner: Client,
    broker: RealBroker,
    gateway: Gateway,
    files: tempfile::TempDir,
}

/// How the configuration comes by its secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Given {
    InTheFile,
    ByFiles,
    ByTheEnvironment,
}

impl Stage {
    async fn start() -> Self {
        let postgres = Postgres::start(Options { auth: Auth::Own, ..Options::default() }).await.unwrap();
        let owner = postgres.connect("postgres", "postgres").await.unwrap();
        let mut migrated = postgres.connect("postgres", "postgres").await.unwrap();
        outbox_relay::migrate::up(&mut migrated).await.unwrap();
        owner
            .batch_execute(&format!(
                "CREATE TABLE bookings (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, created_at {CLOCK}, \
                 customer text DEFAULT 'c', payload text DEFAULT 'p', phone text DEFAULT '+1'); \
                 CREATE INDEX ON bookings (created_at, id); CREATE ROLE relay LOGIN PASSWORD '{POSTGRES}'; \
                 GRANT SELECT ON bookings TO relay"
            ))
            .await
            .unwrap();
        let grants = outbox_relay::migrate::relay_grants("relay", &[]);
        outbox_relay::migrate::grant(&owner, &grants).await.unwrap();
        let module = "org.apache.kafka.common.security.plain.PlainLoginModule";
        let settings = vec![
            ("plain.sasl.jaas.config", format!("{module} required user_relay=\"{KAFKA}\";")),
            ("sasl.enabled.mechanisms", "PLAIN".to_owned()),
        ];
        let listener = Listener { name: "sasl".to_owned(), protocol: "SASL_PLAINTEXT", advertised: None, settings };
        let broker = RealBroker::start_with(&BrokerOptions { listeners: vec![listener], ..BrokerOptions::default() })
            .await
            .unwrap();
        broker.create_topic("t", 1, &[]).await.unwrap();
        let files = tempfile::tempdir().unwrap();
        Self { postgres, owner, broker, gateway: Gateway::start().await, files }
    }

    /// A configuration of three relays; `word` stands in every secret, instead of nothing when it is right.
    fn toml(&self, given: Given, word: &str) -> String {
        let file = |name: &str, secret: &str| {
            let path = self.files.path().join(format!("{name}{word}"));
            std::fs::write(&path, format!("{secret}{word}\n")).unwrap();
            path.display().to_string()
        };
        let port = self.postgres.port();
        let (postgres, kafka, sms) = match given {
            Given::InTheFile => (
                format!("url = \"postgresql://relay:{POSTGRES}{word}@127.0.0.1:{port}/postgres?sslmode=disable\""),
                format!("[kafka.properties]\n\"sasl.password\" = \"{KAFKA}{word}\""),
                format!("auth_token = \"{SMS}{word}\""),
            ),
            Given::ByFiles => (
                format!(
                    "url = \"postgresql://relay@127.0.0.1:{port}/postgres?sslmode=disable\"\npassword_file = \"{}\"",
                    file("postgres", POSTGRES)
                ),
                format!("sasl_password_file = \"{}\"\n[kafka.properties]", file("kafka", KAFKA)),
                format!("auth_token_file = \"{}\"", file("sms", SMS)),
            ),
            Given::ByTheEnvironment => (
                format!("url = \"postgresql://relay@127.0.0.1:{port}/postgres?sslmode=disable\""),
                "[kafka.properties]".to_owned(),
                format!("auth_token = \"{SMS}{word}\""),
            ),
        };
        let source = "start = \"beginning\"\n[relay.source.stream]\ntable = \"public.bookings\"";
        let (servers, url) = (self.broker.listener("sasl").unwrap(), &self.gateway.url);
        format!(
            "[postgres]\n{postgres}\n[kafka]\nbootstrap_servers = \"{servers}\"\n{kafka}\n\
             \"security.protocol\" = \"sasl_plaintext\"\n\"sasl.mechanism\" = \"PLAIN\"\n\"sasl.username\" = \"relay\"\n\
             \"debug\" = \"security,broker\"\n[admin]\nlisten = \"127.0.0.1:0\"\n\
             [[relay]]\nname = \"kafka{word}\"\n{source}\n[relay.sink.kafka]\ntopic = \"t\"\nkey = \"customer\"\n\
             payload = {{ column = \"payload\" }}\n\
             [[relay]]\nname = \"http{word}\"\n{source}\n[relay.sink.http]\n\
             url = \"{url}/2010-04-01/Accounts/AC1/Messages.json?token={QUERY}\"\nbody = \"{{{{ id }}}}\"\n\
             headers = {{ Authorization = \"Bearer {HEADER}{word}\", X-Api-Key = \"{HEADER}{word}\" }}\n\
             [[relay]]\nname = \"sms{word}\"\n{source}\n[relay.sink.sms]\nprovider = \"twilio\"\nbase_url = \"{url}\"\n\
             account_sid = \"AC1\"\n{sms}\nfrom = \"+1\"\nto = \"{{{{ phone }}}}\"\ntext = \"{{{{ id }}}}\"\n"
        )
    }

    fn environment(given: Given, word: &str) -> Vec<(&'static str, String)> {
        let mut variables = vec![("RUST_LOG", "trace,librdkafka=trace,rdkafka=trace".to_owned())];
        if given == Given::ByTheEnvironment {
            variables.push(("PGPASSWORD", format!("{POSTGRES}{word}")));
            variables.push(("OUTBOX_RELAY__KAFKA__PROPERTIES__SASL_PASSWORD", format!("{KAFKA}{word}")));
        }
        variables
    }

    /// Everything that the schema `outbox` holds, as text.
    async fn tables(&self) -> String {
        let names = "SELECT quote_ident(relname) FROM pg_class WHERE relnamespace = 'outbox'::regnamespace \
                     AND relkind IN ('r', 'v', 'p')";
        let mut all = String::new();
        for name in self.owner.query(names, &[]).await.unwrap() {
            let sql = format!(
                "SELECT COALESCE(string_agg(row_to_json(t)::text, E'\\n'), '') FROM outbox.{} AS t",
                name.get::<_, &str>(0)
            );
            all.push_str(self.owner.query_one(&sql, &[]).await.unwrap().get(0));
        }
        all
    }
}

#[track_caller]
fn keeps_quiet(place: &str, text: &str) {
    for canary in [POSTGRES, KAFKA, SMS, HEADER, QUERY, "canary"].iter().chain(&BASE64) {
        // The whole text at once: a log of all levels has a hundred thousand lines.
        let line = || text.lines().find(|line| line.contains(canary)).unwrap_or_default();
        assert!(!text.contains(canary), "{canary} in {place}: {}", line());
    }
}

/// What each verb says, and its exit code.
async fn verbs(toml: &str, environment: &[(&str, String)], expected: &[(&[&str], Option<i32>)]) {
    for (verb, code) in expected {
        let mut process = Process::spawn_with(toml, verb, environment);
        let ended = process.wait().await;
        keeps_quiet(&format!("{verb:?}, standard output"), &process.out());
        keeps_quiet(&format!("{verb:?}, standard error"), &process.log());
        assert_eq!(ended, *code, "{verb:?}: {} {}", process.out(), process.log());
    }
}

/// What `/proc` shows to every user of the machine.
fn command_line(process: &Process) -> String {
    std::fs::read_to_string(format!("/proc/{}/cmdline", process.pid)).unwrap()
}

// Guarantee: secrets.hidden
#[tokio::test(flavor = "multi_thread")]
async fn secrets_that_are_accepted_are_shown_nowhere() {
    let stage = Stage::start().await;
    for (round, given) in [Given::InTheFile, Given::ByFiles, Given::ByTheEnvironment].into_iter().enumerate() {
        let (toml, environment) = (stage.toml(given, ""), Stage::environment(given, ""));
        stage.owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
        let process = Process::spawn_with(&toml, &["run"], &environment);
        let listener = listener(&process).await;
        let expected: Vec<String> = (1..=round + 1).map(|id| id.to_string()).collect();
        let plain = stage.broker.bootstrap_servers();
        eventually(PATIENCE * 3, async || {
            stage.gateway.accepted().len() == expected.len() * 2 && ids(&plain, "t").await == expected
        })
        .await;
        for path in ["/metrics", "/readyz", "/livez", "/"] {
            keeps_quiet(path, &get(&format!("{listener}{path}")).await.1);
        }
        keeps_quiet("the command line", &command_line(&process));
        verbs(
            &toml,
            &environment,
            &[
                (&["config", "show", "--redacted"], Some(0)),
                (&["status"], Some(0)),
                (&["status", "-o", "json"], Some(0)),
                (&["check"], Some(0)),
                (&["check", "-o", "json"], Some(0)),
                (&["cursor", "list", "-o", "json"], Some(0)),
                (&["migrate", "--print-sql"], Some(0)),
            ],
        )
        .await;
        process.signal(rustix::process::Signal::TERM);
        eventually(PATIENCE * 3, async || process.log().contains("outbox-relay has drained")).await;
        let log = process.log();
        assert!(log.contains("\"level\":\"TRACE\"") && log.contains("librdkafka"), "the log is as loud as can be");
        keeps_quiet("the log", &log);
        keeps_quiet("the tables", &stage.tables().await);
    }
    let sent = stage.gateway.asked();
    assert!(sent.iter().any(|asked| asked.authorization == format!("Bearer {HEADER}")), "it was sent for all that");
}

// Guarantee: secrets.hidden
#[tokio::test(flavor = "multi_thread")]
async fn secrets_that_are_refused_are_shown_nowhere() {
    let stage = Stage::start().await;
    stage.owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    stage.gateway.set(Mood::Refuse(401, "{\"code\": 20003, \"message\": \"canary\"}"));
    for given in [Given::ByFiles, Given::ByTheEnvironment] {
        let (toml, environment) = (stage.toml(given, "wrong"), Stage::environment(given, "wrong"));
        // PostgreSQL refuses its password: nothing else is tried.
        let failed: [(&[&str], Option<i32>); 4] =
            [(&["run"], Some(1)), (&["status"], Some(1)), (&["check"], Some(3)), (&["cursor", "list"], Some(1))];
        verbs(&toml, &environment, &failed).await;

        // PostgreSQL accepts; Kafka and the HTTP receivers refuse.
        let postgres = |text: &str| text.replace(&format!("{POSTGRES}wrong"), POSTGRES);
        std::fs::write(stage.files.path().join("postgreswrong"), POSTGRES).unwrap();
        let environment: Vec<_> = environment.iter().map(|(name, value)| (*name, postgres(value))).collect();
        let process = Process::spawn_with(&toml, &["run"], &environment);
        let listener = listener(&process).await;
        let halted = "SELECT count(*) FROM outbox.cursor_status WHERE halted AND cursor LIKE '%wrong'";
        eventually(PATIENCE * 3, async || stage.owner.query_one(halted, &[]).await.unwrap().get::<_, i64>(0) == 3)
            .await;
        for path in ["/metrics", "/readyz"] {
            keeps_quiet(path, &get(&format!("{listener}{path}")).await.1);
        }
        verbs(
            &toml,
            &environment,
            &[(&["status"], Some(0)), (&["status", "-o", "json"], Some(0)), (&["check", "-o", "json"], Some(3))],
        )
        .await;
        keeps_quiet("the command line", &command_line(&process));
        process.signal(rustix::process::Signal::TERM);
        eventually(PATIENCE * 3, async || process.log().contains("outbox-relay has drained")).await;
        keeps_quiet("the log", &process.log());
        keeps_quiet("the tables", &stage.tables().await);
        stage.owner.batch_execute("DELETE FROM outbox.cursor_status; DELETE FROM outbox.cursor").await.unwrap();
    }
}

// Guarantee: secrets.hidden
#[test]
fn what_a_panic_would_print_of_the_configuration_holds_no_secret() {
    let toml = format!(
        "[postgres]\nurl = \"postgresql://relay:{POSTGRES}@h/db\"\n[kafka]\nbootstrap_servers = \"h:1\"\n\
         [kafka.properties]\n\"sasl.password\" = \"{KAFKA}\"\n\
         [[relay]]\nname = \"a\"\nstart = \"now\"\n[relay.source.stream]\ntable = \"public.b\"\n[relay.sink.http]\n\
         url = \"https://h/?token={QUERY}\"\nheaders = {{ X-Token = \"{HEADER}\" }}\nbody = \"x\"\n\
         [[relay]]\nname = \"b\"\nstart = \"now\"\n[relay.source.stream]\ntable = \"public.b\"\n[relay.sink.sms]\n\
         provider = \"twilio\"\naccount_sid = \"AC1\"\nauth_token = \"{SMS}\"\nfrom = \"+1\"\nto = \"+2\"\ntext = \"x\"\n"
    );
    let config = Config::parse(&toml, "test.toml", &Environment::new()).unwrap_or_else(|problems| panic!("{problems}"));
    keeps_quiet("Debug", &format!("{config:?}"));
    keeps_quiet("pretty Debug", &format!("{config:#?}"));
    keeps_quiet("Debug of relays", &format!("{:?}", config.relays));
}
