//! One mail per message over SMTP, in order, one at a time.
//!
//! A message is acknowledged by the server's 250 behind its content and by nothing else; `answer` holds the one table of
//! what every other end means. Every attempt of a message has the same Message-ID, so that a receiver that compares them
//! sees each mail once; servers on the way do not. Passwords and mails go through verified TLS, or to this machine.
//!
//! Two ways in: publications render each message when its turn comes; [`EmailSink::pin`] renders it once, for
//! [`super::Sink::deliver`] to send exactly these bytes, as often as that takes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use super::receipt::Receipt;
use super::{Failure, InvalidSetting};
use crate::message::{Field, Message};
use crate::secret::Secret;

mod address;
mod answer;
mod mail;
mod pool;
mod publication;
mod session;
mod templates;
mod wire;

pub use address::{Mailbox, NoMailbox, ascii_domain};
pub use answer::known_errors;
pub use publication::EmailPublication;
pub use session::{Security, Server};

pub(super) use answer::Step;
use mail::Mail;
use pool::Pool;
use templates::Templates;

/// `[relay.sink.email]` of the configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Where the server is.
    pub server: Server,
    /// The longest time for one mail, connecting included, from when one of `connections` is free for it.
    pub timeout: Duration,
    /// The most mails a second, per cursor.
    pub rate_per_second: Option<f64>,
    /// For how long a request of unknown outcome is sent again: mailboxes may drop what has the same Message-ID, servers do not.
    pub key_memory: Option<Duration>,
    /// The most dialogues at a time, per relay and replica.
    pub connections: usize,
    /// The sender.
    pub from: Mailbox,
    /// Where answers go, if not to the sender.
    pub reply_to: Option<Mailbox>,
    /// The receiver, a template.
    pub to: String,
    /// The name of the template that a row wants, a template itself; needed when there are several.
    pub template: Option<String>,
    /// The domain of Message-IDs.
    pub message_id_domain: String,
    /// The templates by name.
    pub templates: BTreeMap<String, Texts>,
}

/// One named template: `[relay.sink.email.templates.NAME]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Texts {
    /// The subject, a template.
    pub subject: String,
    /// The plain part.
    pub text: Option<Source>,
    /// The HTML part.
    pub html: Option<Source>,
}

/// Where a template's text stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// In the configuration.
    Inline(String),
    /// In a file, read when the relay is made.
    File(PathBuf),
}

impl Config {
    /// Where the messages go, for the cursor's identity and for people.
    #[must_use]
    pub fn target(&self) -> String {
        format!("{} {}", self.server.name(), self.from.address())
    }

    /// The files that it is made of beside the configuration: the password and the templates.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        let password = self.server.credentials.iter().filter_map(|(_, password)| match password {
            Secret::File(path) => Some(path.clone()),
            Secret::Value(_) => None,
        });
        password.chain(self.template_files().into_iter().map(|(_, path)| path)).collect()
    }

    /// The files of its templates, each with its key below the sink's table.
    #[must_use]
    pub fn template_files(&self) -> Vec<(String, PathBuf)> {
        let sources = self.templates.iter().flat_map(|(name, texts)| {
            [("text", &texts.text), ("html", &texts.html)].map(|(kind, source)| (name, kind, source.as_ref()))
        });
        let files = sources.filter_map(|(name, kind, source)| match source? {
            Source::File(path) => Some((format!("templates.{name}.{kind}_file"), path.clone())),
            Source::Inline(_) => None,
        });
        files.collect()
    }
}

/// Sends the messages of one relay.
#[derive(Debug)]
pub struct EmailSink {
    templates: Box<Templates>,
    pool: Pool,
    timeout: Duration,
    min_interval: Option<Duration>,
    relay: String,
}

impl EmailSink {
    /// Compiles the templates; `relay` goes into the Message-IDs.
    ///
    /// # Errors
    /// All settings that cannot work, together.
    pub fn new(config: &Config, relay: &str) -> Result<Self, Vec<InvalidSetting>> {
        let templates = Templates::compile(config, relay);
        let trust = config.server.connector().map_err(|problem| InvalidSetting { key: "ca_file".to_owned(), problem });
        let templates = match (templates, trust) {
            (Ok(templates), Ok(_)) => Box::new(templates),
            (templates, trust) => {
                return Err(templates.err().unwrap_or_default().into_iter().chain(trust.err()).collect());
            }
        };
        let min_interval = config
            .rate_per_second
            .filter(|rate| rate.is_finite() && *rate > 0.0)
            .and_then(|rate| Duration::try_from_secs_f64(1.0 / rate).ok());
        let pool = Pool::new(config.server.clone(), config.connections);
        Ok(Self { templates, pool, timeout: config.timeout, min_interval, relay: relay.to_owned() })
    }

    pub(super) fn relay(&self) -> &str {
        &self.relay
    }

    /// The least time between two mails of one cursor. A publication keeps it between its own mails; between turns the
    /// cursor's holder keeps it, by the cursor's last advance.
    #[must_use]
    pub fn min_interval(&self) -> Option<Duration> {
        self.min_interval
    }

    /// After how long a mail is given up.
    pub(super) const fn timeout(&self) -> Duration {
        self.timeout
    }

    /// How many mails can be on their way at a time.
    pub(super) fn at_once(&self) -> usize {
        self.pool.connections
    }

    pub(super) fn fields(&self) -> &[Field] {
        self.templates.fields()
    }

    /// The mail as it would be sent; none when a template fails for the message.
    pub(super) fn rendered(&self, message: &Message<'_>) -> Option<Vec<u8>> {
        self.templates.write(message, SystemTime::now()).ok().map(|mail| mail.content)
    }

    /// Renders a message once and for all: whom the mail goes to, and its bytes.
    ///
    /// # Errors
    /// When the row's values make no mail: the row is poison.
    pub fn pin(&self, message: &Message<'_>) -> Result<Vec<u8>, Failure> {
        self.templates.write(message, SystemTime::now()).map(|mail| mail.pin())
    }

    /// Sends what was pinned for the message `id`, byte by byte; `step` says how far it has come, also when this is
    /// dropped.
    ///
    /// # Errors
    /// When the server has not taken it within `patience` and the configured time-out.
    pub(super) async fn deliver(
        &self,
        id: &str,
        pinned: &[u8],
        patience: Duration,
        step: &mut Step,
    ) -> Result<Receipt, Failure> {
        let mail = Mail::unpin(pinned, id)?;
        self.send(&mail, patience, step).await
    }

    /// Connects and signs in, without a mail, and answers the largest mail that the server says it takes.
    ///
    /// # Errors
    /// When the server takes no mail from here.
    pub async fn probe(&self, patience: Duration) -> Result<Option<usize>, Failure> {
        let mut step = Step::default();
        let probed = self.pool.probe(Instant::now() + patience.min(self.timeout), &mut step).await;
        probed.map_err(|trouble| answer::judge(step, &trouble, &self.pool.server.name()))
    }

    async fn send(&self, mail: &Mail, patience: Duration, step: &mut Step) -> Result<Receipt, Failure> {
        let sent = self.pool.send(mail, patience, self.timeout, step).await;
        match sent {
            Ok(reply) => Ok(Receipt::new(Some(&mail.message_id), &reply.text())),
            Err(trouble) => Err(answer::judge(*step, &trouble, &self.pool.server.name())),
        }
    }
}

#[cfg(test)]
mod tests;
