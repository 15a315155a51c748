//! A mail server under test, and relays of a table of people to it.

use outbox_testkit::smtp::{Options, Security, SmtpServer};
use outbox_testkit::startup::private;
use tokio_postgres::Client;

use super::tls::{Authority, Showing};
use super::{Database, database, toml};

pub const USER: &str = "relay";
pub const PASSWORD: &str = "correct horse";

/// A database with a table `people`, and what a sender must know of the server.
pub struct Stage {
    pub database: Database,
    pub owner: Client,
    pub authority: Authority,
    pub folder: tempfile::TempDir,
}

impl Stage {
    pub async fn start() -> Self {
        let database = database().await;
        let owner = database.connect("postgres").await;
        owner
            .batch_execute(
                "CREATE TABLE public.people (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, \
                 created_at timestamptz NOT NULL DEFAULT clock_timestamp(), email text, name text, \
                 template text NOT NULL DEFAULT 'welcome'); \
                 CREATE INDEX ON public.people (created_at, id); GRANT SELECT ON public.people TO relay",
            )
            .await
            .unwrap();
        let stage = Self { database, owner, authority: Authority::new(), folder: tempfile::tempdir().unwrap() };
        stage.password(PASSWORD);
        stage
    }

    /// Writes the file that relays take their password from.
    pub fn password(&self, password: &str) {
        private(&self.folder.path().join("password"), &format!("{password}\n")).unwrap();
    }

    /// A server with TLS that wants the one user's password.
    pub async fn server(&self, security: Security, showing: Showing) -> SmtpServer {
        let files = self.authority.issue(showing);
        let options = Options {
            security,
            certificate: Some((files.certificate, files.key)),
            user: Some((USER.to_owned(), PASSWORD.to_owned())),
            ..Options::default()
        };
        SmtpServer::start(&options).await.unwrap()
    }

    pub async fn add(&self, name: &str, email: &str) {
        let sql = "INSERT INTO people (name, email) VALUES ($1, $2)";
        self.owner.execute(sql, &[&name, &email]).await.unwrap();
    }

    /// A relay of `people` to this server; `more` is added to its sink, before the templates.
    pub fn relay(&self, name: &str, port: u16, security: &str, more: &str) -> String {
        self.relay_with(name, port, &format!("security = \"{security}\"\n{}\n{more}", self.trust()))
    }

    /// The keys of a sink that signs in and trusts the authority.
    pub fn trust(&self) -> String {
        let (folder, authority) = (self.folder.path().display(), self.authority.file());
        format!("username = \"{USER}\"\npassword_file = \"{folder}/password\"\nca_file = \"{}\"", authority.display())
    }

    /// The same with all of its keys given but server, port, sender and receiver.
    pub fn relay_with(&self, name: &str, port: u16, keys: &str) -> String {
        format!(
            "[[relay]]\nname = \"{name}\"\nstart = \"beginning\"\n[relay.source.stream]\ntable = \"public.people\"\n\
             [relay.sink.email]\nserver = \"127.0.0.1\"\nport = {port}\n{keys}\n\
             from = \"The Shöp <shop@example.com>\"\nto = \"{{{{ name }}}} <{{{{ email }}}}>\"\n\
             [relay.sink.email.templates.welcome]\nsubject = \"Welcome, {{{{ name }}}}\"\n\
             text = \"Dear {{{{ name }}}},\\nyour number is {{{{ id }}}}.\\n.\\n\"\n\
             html = \"<p title=\\\"{{{{ name }}}}\\\">Dear <b>{{{{ name }}}}</b></p>\"\n"
        )
    }

    /// The whole configuration.
    pub fn toml(&self, relays: &str) -> String {
        toml(&self.database, "relay", None, relays)
    }
}
