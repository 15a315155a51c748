//! The settings of a relay's sink as a value, and what the engine asks of it before the sink is made. `config/sink` reads them from
//! the configuration.

use super::{Kind, command, custom, email, http, kafka, sms, sql, stdout, webhook};

/// The configured sink of a relay.
#[derive(Clone, Debug, PartialEq)]
pub enum Config {
    /// Records to a Kafka topic.
    Kafka(kafka::Config),
    /// One HTTP request per message.
    Http(http::Config),
    /// One SMS per message, by a provider's API.
    Sms(sms::Config),
    /// One signed HTTP request per message, to public addresses.
    Webhook(webhook::Config),
    /// A statement per message or batch, in the cursor's own transaction.
    Sql(sql::Config),
    /// One mail per message, by SMTP.
    Email(Box<email::Config>),
    /// One JSON line per message on standard output, for dry runs.
    Stdout(stdout::Config),
    /// A program per action of a schedule.
    Command(command::Config),
    /// What the program has registered.
    Custom(custom::Config),
}

impl Config {
    /// Its kind, which answers what does not depend on the settings.
    #[must_use]
    pub const fn of_kind(&self) -> Kind {
        match self {
            Self::Kafka(_) => Kind::Kafka,
            Self::Http(_) => Kind::Http,
            Self::Sms(_) => Kind::Sms,
            Self::Webhook(_) => Kind::Webhook,
            Self::Sql(_) => Kind::Sql,
            Self::Email(_) => Kind::Email,
            Self::Stdout(_) => Kind::Stdout,
            Self::Command(_) => Kind::Command,
            Self::Custom(_) => Kind::Custom,
        }
    }

    /// The kind's name, as in the configuration and in metrics; of a sink of one's own, the name under which it is registered.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        if let Self::Custom(config) = self { config.kind } else { self.of_kind().name() }
    }

    /// Whether messages reach people or their systems one by one: such a relay needs an explicit `start`, publishes one
    /// row a turn unless told otherwise, and uses at most half of the turn slots.
    #[must_use]
    pub const fn one_by_one(&self) -> bool {
        match self {
            Self::Http(_) | Self::Sms(_) | Self::Webhook(_) | Self::Email(_) | Self::Command(_) => true,
            Self::Custom(config) => config.description.one_by_one,
            Self::Kafka(_) | Self::Sql(_) | Self::Stdout(_) => false,
        }
    }

    /// Whom a message is for, a template; none where messages have no recipient.
    #[must_use]
    pub fn recipient(&self) -> Option<&str> {
        match self {
            Self::Sms(sms) => Some(&sms.to),
            Self::Email(email) => Some(&email.to),
            Self::Kafka(_)
            | Self::Http(_)
            | Self::Webhook(_)
            | Self::Sql(_)
            | Self::Stdout(_)
            | Self::Command(_)
            | Self::Custom(_) => None,
        }
    }

    /// What is out together: the Kafka cluster, or one receiver.
    #[must_use]
    pub fn circuit(&self) -> String {
        match self {
            Self::Kafka(_) => "kafka".to_owned(),
            Self::Http(_)
            | Self::Sms(_)
            | Self::Webhook(_)
            | Self::Sql(_)
            | Self::Email(_)
            | Self::Stdout(_)
            | Self::Command(_)
            | Self::Custom(_) => {
                format!("{} {}", self.kind(), self.target())
            }
        }
    }

    /// Where the messages go, for the cursor's identity and for people: no secrets.
    #[must_use]
    pub fn target(&self) -> String {
        match self {
            Self::Kafka(config) => config.topic.clone(),
            Self::Http(config) => config.target(),
            Self::Sms(config) => format!("{} {}", config.base_url, config.account_sid),
            Self::Webhook(config) => config.request.target(),
            Self::Sql(_) => "database".to_owned(),
            Self::Email(config) => config.target(),
            Self::Stdout(_) | Self::Command(_) => "-".to_owned(),
            Self::Custom(config) => config.description.target.clone(),
        }
    }
}
