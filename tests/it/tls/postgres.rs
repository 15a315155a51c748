//! PostgreSQL.

use std::path::Path;

use outbox_testkit::postgres::{Auth, Options, Postgres, password};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_postgres::Client;

use crate::support::outside::{finding, json, stdout_relay};
use crate::support::tls::{Authority, Showing};
use crate::support::{CLOCK, PATIENCE, eventually, outbox_relay};

/// A server with passwords and a table, and what it shows for itself.
pub(super) struct Server {
    pub(super) postgres: Postgres,
    pub(super) owner: Client,
    pub(super) authority: Authority,
}

impl Server {
    pub(super) async fn start() -> Self {
        let settings = vec![("log_connections".to_owned(), "on".to_owned())];
        let options = Options { auth: Auth::Own, settings, ..Options::default() };
        let postgres = Postgres::start(options).await.unwrap();
        let owner = postgres.connect("postgres", "postgres").await.unwrap();
        let mut migrated = postgres.connect("postgres", "postgres").await.unwrap();
        outbox_relay::migrate::up(&mut migrated).await.unwrap();
        owner
            .batch_execute(&format!(
                "CREATE TABLE bookings (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, created_at {CLOCK}); \
                 CREATE INDEX ON bookings (created_at, id); INSERT INTO bookings DEFAULT VALUES"
            ))
            .await
            .unwrap();
        Self { postgres, owner, authority: Authority::new() }
    }

    /// From now on new connections meet this certificate; `None` switches TLS off.
    pub(super) async fn show(&self, showing: Option<Showing>) {
        let loaded = async || {
            let client = self.postgres.connect("postgres", "postgres").await.unwrap();
            client.query_one("SELECT pg_conf_load_time()::text", &[]).await.unwrap().get::<_, String>(0)
        };
        let before = loaded().await;
        if let Some(showing) = showing {
            let files = self.authority.issue(showing);
            // The server copies them itself: a key must belong to it.
            let (key, certificate) = (files.key.display(), files.certificate.display());
            let copy = format!("umask 077; cp {key} server.key; cp {certificate} server.crt; cat >copied");
            self.owner.batch_execute(&format!("COPY (SELECT 1) TO PROGRAM '{copy}'")).await.unwrap();
        }
        let ssl = if showing.is_some() { "on" } else { "off" };
        self.owner.batch_execute(&format!("ALTER SYSTEM SET ssl = {ssl}")).await.unwrap();
        self.owner.batch_execute("SELECT pg_reload_conf()").await.unwrap();
        eventually(PATIENCE, async || loaded().await != before).await;
    }

    fn toml(&self, host: &str, mode: &str, ca_file: Option<&Path>) -> String {
        let port = self.postgres.port();
        let ca_file = ca_file.map_or(String::new(), |path| format!("ca_file = \"{}\"\n", path.display()));
        format!(
            "[postgres]\nurl = \"postgresql://postgres:{}@{host}:{port}/postgres?sslmode={mode}\"\n{ca_file}\
             [admin]\nlisten = \"127.0.0.1:0\"\n{}",
            password("postgres"),
            stdout_relay("s", "")
        )
    }

    /// How many sessions TLS has let in so far, by the server's own word.
    fn let_in(&self) -> usize {
        let log = std::fs::read_to_string(self.postgres.log()).unwrap();
        log.lines().filter(|line| line.contains("authorized: user=postgres") && line.contains("outbox-relay")).count()
    }

    async fn accepts(&self, toml: &str) {
        let before = self.let_in();
        self.owner.batch_execute("DELETE FROM outbox.cursor").await.unwrap();
        let (code, out, log) = outbox_relay(toml, &["run", "--once"]).await;
        assert_eq!((code, out.lines().count()), (Some(0), 1), "{log}");
        assert!(self.let_in() > before);
        let text = std::fs::read_to_string(self.postgres.log()).unwrap();
        let mut sessions = text.lines().filter(|line| line.contains("authorized: user=postgres"));
        assert!(sessions.any(|line| line.contains("SSL enabled")), "{text}");
    }

    /// Refused at start, with exit code 1 and a message that holds all of `words`; by `check`, too.
    async fn refuses(&self, toml: &str, words: &[&str]) {
        let before = self.let_in();
        let (code, out, log) = outbox_relay(toml, &["run"]).await;
        assert_eq!((code, out.as_str()), (Some(1), ""), "{log}");
        let error = log.lines().find(|line| line.starts_with("error: ")).expect("a line for people").to_owned();
        println!("{error}");
        for word in words {
            assert!(error.contains(word), "{word:?} in {error}");
        }
        assert!(!log.contains(&password("postgres")), "{log}");
        let (code, out, _) = outbox_relay(toml, &["check", "-o", "json"]).await;
        let document = json(&out);
        let found = finding(&document, "tls").unwrap_or_else(|| panic!("{document}"));
        assert_eq!((code, &found["level"]), (Some(3), &"error".into()));
        let (message, fix) = (found["message"].as_str().unwrap(), found["fix_setting"].as_str().unwrap());
        assert!(fix.contains("[postgres]") && !message.contains(fix), "told once: {found}");
        assert_eq!(self.let_in(), before, "no session came to be");
    }
}

// Guarantee: secrets.tls
#[tokio::test(flavor = "multi_thread")]
async fn postgres_with_the_right_certificate_is_accepted_and_every_other_refused_by_name() {
    let server = Server::start().await;
    let ca = server.authority.file();
    let full = server.toml("127.0.0.1", "verify-full", Some(&ca));
    let fixes = ["[postgres] ca_file", "[postgres] url"];

    server.show(Some(Showing::Right)).await;
    server.accepts(&full).await;
    let unknown = server.toml("127.0.0.1", "verify-full", None);
    server.refuses(&unknown, &[&["unable to get local issuer certificate"][..], &fixes].concat()).await;

    server.show(Some(Showing::OtherHost)).await;
    server.refuses(&full, &[&["IP address mismatch"][..], &fixes].concat()).await;
    let named = server.toml("localhost", "verify-full", Some(&ca));
    server.refuses(&named, &[&["ostname mismatch"][..], &fixes].concat()).await;
    server.accepts(&server.toml("127.0.0.1", "verify-ca", Some(&ca))).await;

    server.show(Some(Showing::Expired)).await;
    server.refuses(&full, &[&["certificate has expired"][..], &fixes].concat()).await;
    server.refuses(&server.toml("127.0.0.1", "verify-ca", Some(&ca)), &["certificate has expired"]).await;

    server.show(Some(Showing::SelfSigned)).await;
    server.refuses(&full, &[&["self-signed certificate"][..], &fixes].concat()).await;
    server.refuses(&server.toml("127.0.0.1", "verify-ca", Some(&ca)), &["self-signed certificate"]).await;
    server.accepts(&server.toml("127.0.0.1", "require", None)).await;

    server.show(None).await;
    for mode in ["verify-full", "require"] {
        server.refuses(&server.toml("127.0.0.1", mode, None), &["does not support TLS", "sslmode=disable"]).await;
    }
    server.postgres.stop().await.unwrap();
}

// Guarantee: secrets.tls
#[tokio::test(flavor = "multi_thread")]
async fn whoever_answers_that_there_is_no_tls_learns_nothing() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let heard = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut heard = vec![0; 8];
        stream.read_exact(&mut heard).await.unwrap();
        stream.write_all(b"N").await.unwrap();
        stream.read_to_end(&mut heard).await.unwrap();
        heard
    });
    let toml = format!(
        "[postgres]\nurl = \"postgresql://relay:sesame@127.0.0.1:{port}/app\"\n[admin]\nlisten = \"127.0.0.1:0\"\n{}",
        stdout_relay("s", "")
    );
    let (code, _, log) = outbox_relay(&toml, &["cursor", "list"]).await;
    assert_eq!(code, Some(1), "{log}");
    let request = [0, 0, 0, 8, 4, 210, 22, 47];
    assert_eq!(heard.await.unwrap(), request, "the request for TLS, and not a byte more");
}
