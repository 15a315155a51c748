//! Brokers that want to know who publishes: a token of an issuer, a password that is replaced while the relay runs.

use std::collections::HashSet;
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::post;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use outbox_testkit::kafka::{BrokerOptions, Listener, RealBroker};
use tokio_postgres::Client;

use crate::support::outside::{finding, json, standing};
use crate::support::{
    CLOCK, Database, PATIENCE, Process, bookings, database, eventually, ids, kafka_relay, outbox_relay, toml,
};

#[cfg(feature = "iam")]
mod aws_iam;
mod classes;
mod extensions;
mod issuer;
mod refused;

use issuer::{Issuer, answer};

const SECRET: &str = "s3cret";

/// A table, and a broker with a listener `tokens`, at which relays log in.
struct Scene {
    database: Database,
    owner: Client,
    broker: RealBroker,
}

impl Scene {
    async fn start(options: &BrokerOptions) -> Self {
        let database = database().await;
        let owner = bookings(&database, CLOCK).await;
        let broker = RealBroker::start_with(options).await.unwrap();
        broker.create_topic("t", 1, &[("max.message.bytes", "3000000")]).await.unwrap();
        broker.create_topic("dead", 1, &[]).await.unwrap();
        Self { database, owner, broker }
    }

    /// A configuration whose `[kafka]` goes on with these sections.
    fn text(&self, sections: &str) -> String {
        let relay =
            kafka_relay("k", "t", "start = \"beginning\"\non_poison = \"dead_letter\"\ndead_letter_topic = \"dead\"");
        let relays = format!("[kafka.properties]\n\"security.protocol\" = \"sasl_plaintext\"\n{sections}{relay}");
        let text = toml(&self.database, "relay", self.broker.listener("tokens").as_deref(), &relays);
        // The section that follows [kafka] belongs to it.
        let admin = "[admin]\nlisten = \"127.0.0.1:0\"\n";
        format!("{}{admin}", text.replace(admin, ""))
    }

    async fn book(&self) {
        self.owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    }

    async fn rows(&self) -> i64 {
        self.owner.query_one("SELECT count(*) FROM bookings", &[]).await.unwrap().get(0)
    }

    async fn has_code(&self, code: &str) -> serde_json::Value {
        let is_there = async || standing(&self.owner, "k").await.is_some_and(|(_, _, _, error)| error["code"] == code);
        eventually(PATIENCE * 4, is_there).await;
        standing(&self.owner, "k").await.unwrap().3
    }

    /// Books rows until the relay has the failure `code`, and is not halted by it.
    async fn book_until(&self, code: &str, process: &Process) -> serde_json::Value {
        let end = Instant::now() + PATIENCE * 6;
        loop {
            assert!(Instant::now() < end, "{code} has not come: {}", process.log());
            self.book().await;
            tokio::time::sleep(Duration::from_millis(50)).await;
            let error = standing(&self.owner, "k").await.map(|(_, _, _, error)| error);
            assert!(!process.log().contains("relay halted"), "{}", process.log());
            if let Some(error) = error.filter(|error| error["code"] == code) {
                return error;
            }
        }
    }

    /// The clients' ports of the connections that the broker takes tokens on (proc(5)).
    fn connections(&self) -> HashSet<String> {
        let port = self.broker.listener("tokens").unwrap().split_once(':').unwrap().1.parse::<u16>().unwrap();
        let remote = format!("0100007F:{port:04X}");
        let table = fs::read_to_string("/proc/net/tcp").unwrap();
        let fields = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        // 01: established.
        fields.filter(|of| of.len() > 3 && of[2] == remote && of[3] == "01").map(|of| of[1].to_owned()).collect()
    }

    /// Waits until the topic has all rows, in their order.
    async fn has_all(&self) {
        let rows = self.rows().await;
        let servers = self.broker.bootstrap_servers();
        let first = async || {
            let mut seen = HashSet::new();
            let mut all = ids(&servers, "t").await;
            all.retain(|id| seen.insert(id.clone()));
            all
        };
        eventually(PATIENCE * 4, async || i64::try_from(first().await.len()).unwrap() >= rows).await;
        assert_eq!(first().await, (1..=rows).map(|id| id.to_string()).collect::<Vec<_>>());
    }

    /// Books rows while `done` says no, on a connection that outlives the tokens: each row is in the topic once.
    async fn books_while_tokens_are_renewed(&self, done: impl Fn() -> bool) {
        let servers = self.broker.bootstrap_servers();
        eventually(PATIENCE, async || !ids(&servers, "t").await.is_empty()).await;
        let (begun, connected) = (Instant::now(), self.connections());
        while !done() || begun.elapsed() < Duration::from_secs(28) {
            assert!(begun.elapsed() < PATIENCE * 12, "too few tokens were taken");
            self.book().await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(self.connections().intersection(&connected).next().is_some(), "none has outlived its token");
        self.has_all().await;
        let copies = i64::try_from(ids(&servers, "t").await.len()).unwrap();
        assert_eq!(copies, self.rows().await, "renewed without a repeated row");
    }
}

/// A broker that takes an issuer's tokens.
struct Stage {
    scene: Scene,
    issuer: Arc<Issuer>,
    port: u16,
}

impl Stage {
    async fn start(lasts: u64) -> Self {
        let issuer = Issuer::new(lasts);
        let options = BrokerOptions { listeners: vec![issuer.listener()], ..BrokerOptions::default() };
        Self::with(issuer, &options).await
    }

    async fn with(issuer: Arc<Issuer>, options: &BrokerOptions) -> Self {
        let scene = Scene::start(options).await;
        let port = served(Router::new().route("/token", post(answer)).with_state(Arc::clone(&issuer))).await;
        Self { scene, issuer, port }
    }

    fn text(&self) -> String {
        self.text_with("")
    }

    /// With these keys of `[kafka.oauth2]`, too.
    fn text_with(&self, more: &str) -> String {
        let (port, folder) = (self.port, self.issuer.folder.path().display());
        self.scene.text(&format!(
            "[kafka.oauth2]\ntoken_url = \"http://127.0.0.1:{port}/token\"\nclient_id = \"relay\"\n\
             client_secret_file = \"{folder}/secret\"\nscope = \"w\"\n{more}"
        ))
    }
}

/// Serves on loopback until the end; at which port.
async fn served(router: Router) -> u16 {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move { axum::serve(listener, router).await });
    port
}

// Guarantee: secrets.oauth2
#[tokio::test(flavor = "multi_thread")]
async fn kafka_gets_tokens_that_are_renewed_and_rows_wait_while_there_is_none() {
    // Long enough for librdkafka, which looks once a second: it has the next token when four fifths of the life are over, and shows it
    // at nine tenths.
    let stage = Stage::start(12).await;
    let (text, scene) = (stage.text(), &stage.scene);
    scene.book().await;
    let (code, out, log) = outbox_relay(&text, &["check", "-o", "json"]).await;
    let document = json(&out);
    // The topic's settings are asked for by a client of another kind, which logs in as well.
    let size = finding(&document, "message_size").unwrap_or_else(|| panic!("{out}{log}"));
    assert!(code == Some(0) && size["message"].as_str().unwrap().contains("of 3000000 bytes"), "{code:?} {out}");
    let process = Process::spawn(&text, &["run"]);
    // One of `check`, and three of the relay: a connection of the first one has been shown two others.
    scene.books_while_tokens_are_renewed(|| stage.issuer.see(|said| said.given) >= 4).await;
    stage.issuer.see(|said| said.away = true);
    println!("{}", scene.book_until("token_unavailable", &process).await);
    stage.issuer.see(|said| said.away = false);
    scene.book().await;
    scene.has_all().await;
    let (code, out, log) = outbox_relay(&text, &["verify", "k"]).await;
    assert_eq!(code, Some(0), "{out}{log}");
    let log = process.log();
    assert!(!log.contains("relay halted"), "{log}");
    let head = BASE64_URL_SAFE_NO_PAD.encode(r#"{"alg":"RS256""#);
    assert!(!log.contains(SECRET) && !log.contains(&head[..12]), "{log}");
    stage.scene.broker.stop().await.unwrap();
}

// Guarantee: secrets.oauth2
#[tokio::test(flavor = "multi_thread")]
async fn tokens_that_are_refused_halt_until_the_secret_is_corrected() {
    let stage = Stage::start(3600).await;
    let (text, scene) = (stage.text(), &stage.scene);
    scene.book().await;
    stage.issuer.secret("wr0ng");
    let (code, out, _) = outbox_relay(&text, &["check", "-o", "json"]).await;
    let document = json(&out);
    let found = finding(&document, "token_refused").unwrap_or_else(|| panic!("{out}"));
    println!("{found}");
    assert_eq!((code, &found["level"]), (Some(3), &"error".into()), "{out}");
    let process = Process::spawn(&text, &["run"]);
    println!("{}", scene.has_code("token_refused").await);
    // The issuer gives tokens now, which the broker does not take.
    stage.issuer.see(|said| said.audience = "elsewhere");
    stage.issuer.secret(SECRET);
    let refused = scene.has_code("kafka_authentication").await;
    println!("{refused}");
    assert!(refused["hint"].as_str().unwrap().contains("[kafka.oauth2]"), "{refused}");
    assert!(standing(&scene.owner, "k").await.unwrap().1, "halted");
    stage.issuer.see(|said| said.audience = "kafka");
    assert_eq!(outbox_relay(&text, &["cursor", "resume", "k"]).await.0, Some(0));
    scene.has_all().await;
    // Copies of dead letters have a client of their own.
    let large =
        "INSERT INTO bookings (payload) SELECT string_agg(md5(n::text), '') FROM generate_series(1, 100000) AS n";
    scene.owner.batch_execute(large).await.unwrap();
    let servers = scene.broker.bootstrap_servers();
    eventually(PATIENCE * 2, async || ids(&servers, "dead").await == ["2"]).await;
    let log = process.log();
    assert!(!log.contains("wr0ng") && !log.contains(SECRET), "{log}");
    stage.scene.broker.stop().await.unwrap();
}

// Guarantee: secrets.files
#[tokio::test(flavor = "multi_thread")]
async fn replaced_password_of_the_brokers_needs_no_restart() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let jaas = |password: &str| {
        format!("org.apache.kafka.common.security.plain.PlainLoginModule required user_relay=\"{password}\";")
    };
    let settings = vec![("plain.sasl.jaas.config", jaas("first")), ("sasl.enabled.mechanisms", "PLAIN".to_owned())];
    let listener = Listener { name: "sasl".to_owned(), protocol: "SASL_PLAINTEXT", advertised: None, settings };
    let options = BrokerOptions { listeners: vec![listener], ..BrokerOptions::default() };
    let mut broker = RealBroker::start_with(&options).await.unwrap();
    broker.create_topic("t", 1, &[]).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    fs::write(&file, "first\n").unwrap();
    let relays = format!(
        "[kafka.properties]\n\"security.protocol\" = \"sasl_plaintext\"\n\"sasl.mechanism\" = \"PLAIN\"\n\"sasl.username\" = \"relay\"\n{}",
        kafka_relay("k", "t", "start = \"beginning\"")
    );
    let text = toml(&database, "relay", broker.listener("sasl").as_deref(), &relays);
    let (admin, servers) = ("[admin]\nlisten = \"127.0.0.1:0\"\n", broker.bootstrap_servers());
    let head = format!("sasl_password_file = \"{}\"\n", file.display());
    let text = format!("{}{admin}", text.replace(admin, &head));
    let process = Process::spawn(&text, &["run"]);
    let book = async || owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    let has = async |rows: usize| eventually(PATIENCE * 4, async || ids(&servers, "t").await.len() == rows).await;
    let properties = broker.dir().join("server.properties");
    let mut brokers = async |old: &str, new: &str| {
        let text = fs::read_to_string(&properties).unwrap();
        fs::write(&properties, text.replace(&jaas(old), &jaas(new))).unwrap();
        broker.restart().await.unwrap();
    };
    book().await;
    has(1).await;
    // The brokers alone: nothing says that the password of the file will be right again.
    brokers("first", "second").await;
    book().await;
    let is_halted = async || standing(&owner, "k").await.is_some_and(|(_, halted, _, _)| halted);
    eventually(PATIENCE * 4, is_halted).await;
    assert_eq!(standing(&owner, "k").await.unwrap().3["code"], "kafka_authentication");
    assert!(process.log().contains("\"attempt\":2"), "believed at the third refusal: {}", process.log());
    fs::write(&file, "second\n").unwrap();
    has(2).await;
    // The file first, as secrets are replaced: connections of before stay in use, and after them the new password counts.
    let halts = process.log().matches("relay halted").count();
    fs::write(&file, "third\n").unwrap();
    book().await;
    has(3).await;
    brokers("second", "third").await;
    book().await;
    has(4).await;
    // The brokers first: a new password is waited for.
    brokers("third", "fourth").await;
    book().await;
    eventually(PATIENCE * 4, async || standing(&owner, "k").await.unwrap().3["code"] == "kafka_authentication").await;
    assert!(!is_halted().await, "{}", process.log());
    fs::write(&file, "fourth\n").unwrap();
    has(5).await;
    assert_eq!(process.log().matches("relay halted").count(), halts, "{}", process.log());
    broker.stop().await.unwrap();
}
