//! Formats whose schemas stand in a registry: `format = "avro"`, `"protobuf"` and `"json_schema"`, in Confluent's wire format.
//!
//! Promise: a record is written by a schema that the registry has, under the id that it gave. A row that does not fit is poison, and its
//! field is named; before that, a registry whose latest schema counts is asked whether there is a later one. While the registry is away,
//! schemas that it has given stay in use, and a row whose schema is not known waits. A schema that is missing or refused stops all rows
//! that would need it: none becomes a dead letter because of what is wrong with all of them.
//!
//! What reads schemas and writes by them is the cargo feature `schema-registry`: docs/adr/0042-formats-with-a-schema-registry.md.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::sink::Failure;
use crate::sink::http::access;

#[cfg(feature = "schema-registry")]
mod avro;
#[cfg(feature = "schema-registry")]
mod binary;
#[cfg(feature = "schema-registry")]
mod codec;
#[cfg(feature = "schema-registry")]
mod encoder;
#[cfg(not(feature = "schema-registry"))]
#[path = "schema/left_out.rs"]
mod encoder;
#[cfg(feature = "schema-registry")]
mod failure;
#[cfg(all(test, feature = "schema-registry"))]
mod garbled_tests;
#[cfg(feature = "schema-registry")]
mod json;
#[cfg(feature = "schema-registry")]
mod json_schema;
#[cfg(feature = "schema-registry")]
mod kept;
#[cfg(feature = "schema-registry")]
mod misfit;
#[cfg(feature = "schema-registry")]
mod moment;
#[cfg(feature = "schema-registry")]
mod number;
#[cfg(feature = "schema-registry")]
mod protobuf;
#[cfg(feature = "schema-registry")]
mod question;
#[cfg(feature = "schema-registry")]
mod registry;
mod sink;
#[cfg(all(test, feature = "schema-registry"))]
mod tests;
#[cfg(feature = "schema-registry")]
mod topics;

pub(super) use encoder::{Encoder, Registries, Unencoded};
pub use sink::describe_schema;

/// The code of a row that does not fit its schema.
pub(super) const MISMATCH: &str = "schema_mismatch";
/// Codes of what is wrong with a schema, and so with all rows that would need it.
pub(super) const OF_SCHEMAS: [&str; 3] = ["schema_missing", "schema_refused", "schema_unusable"];
/// Codes of a registry that gives no schema, and of a file that has to be read for it.
const OF_REGISTRIES: [&str; 3] = ["schema_registry_unavailable", "schema_registry_refused", "schema_file_unreadable"];
/// Codes of the log-in at the registry, which the client of HTTP gives.
const OF_LOGINS: [&str; 5] =
    ["token_ended", "token_refused", "token_unavailable", "secret_unreadable", "certificate_unusable"];

/// The code of a failure of [`describe_schema`], as one of those that are documented; none for another.
#[must_use]
pub fn schema_code(failure: &Failure) -> Option<&'static str> {
    OF_SCHEMAS.into_iter().chain(OF_REGISTRIES).chain(OF_LOGINS).find(|code| *code == failure.code)
}

/// Which format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SchemaKind {
    /// Apache Avro, binary.
    Avro,
    /// Protocol Buffers.
    Protobuf,
    /// JSON that a JSON Schema has nothing against.
    JsonSchema,
}

impl SchemaKind {
    /// As the configuration has it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Avro => "avro",
            Self::Protobuf => "protobuf",
            Self::JsonSchema => "json_schema",
        }
    }

    /// As registries have it.
    #[must_use]
    pub const fn in_registry(self) -> &'static str {
        match self {
            Self::Avro => "AVRO",
            Self::Protobuf => "PROTOBUF",
            Self::JsonSchema => "JSON",
        }
    }
}

/// How the subject of a schema is named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SubjectName {
    /// `TOPIC-value`: `TopicNameStrategy`.
    #[default]
    Topic,
    /// The record's full name: `RecordNameStrategy`.
    Record,
    /// `TOPIC-RECORD`: `TopicRecordNameStrategy`.
    TopicRecord,
}

/// Which schema of the subject counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WantedSchema {
    /// The latest, asked for again from time to time.
    Latest,
    /// The version of this number.
    Version(u32),
    /// The one that a file has.
    File {
        /// Its path.
        path: PathBuf,
        /// Whether it is registered where the registry does not have it.
        register: bool,
    },
}

/// `[relay.sink.kafka.avro]`, `.protobuf` or `.json_schema` of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaFormat {
    /// Which of them.
    pub kind: SchemaKind,
    /// How the subject is named.
    pub subject: SubjectName,
    /// Which schema counts.
    pub wanted: WantedSchema,
    /// The full name of the record or message; none where the schema says it.
    pub record: Option<String>,
    /// Columns that the schema does not have are left out, instead of refused.
    pub ignores_unknown: bool,
    /// Where schemas are.
    pub registry: Arc<RegistryConfig>,
}

impl SchemaFormat {
    /// Whether this program can write such formats.
    #[must_use]
    pub const fn is_available() -> bool {
        cfg!(feature = "schema-registry")
    }

    /// Whether topics have subjects of their own.
    #[must_use]
    pub const fn depends_on_topic(&self) -> bool {
        !matches!(self.subject, SubjectName::Record)
    }

    /// Files that are read again after a halt.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        let schema = match &self.wanted {
            WantedSchema::File { path, .. } => Some(path.clone()),
            WantedSchema::Latest | WantedSchema::Version(_) => None,
        };
        schema.into_iter().chain(self.registry.secret_files()).collect()
    }
}

/// How the relay logs in at the registry, where not by `oauth2`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RegistryLogin {
    /// It does not.
    #[default]
    None,
    /// By the header Authorization of the scheme Basic.
    Basic {
        /// The user.
        username: String,
        /// The file of the password.
        password_file: PathBuf,
    },
    /// By a Bearer token from a file.
    Token(PathBuf),
}

/// `[schema_registry]` of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryConfig {
    /// Where its API begins, without a slash at the end.
    pub url: String,
    /// How the relay logs in.
    pub login: RegistryLogin,
    /// Authorities, a certificate of the relay's own, and an issuer of tokens.
    pub access: access::Config,
    /// The longest wait for an answer, with all that it takes.
    pub timeout: Duration,
    /// After how long the latest schema of a subject is asked for again.
    pub refresh: Duration,
}

impl RegistryConfig {
    /// Files that are read again at each use.
    #[must_use]
    pub fn secret_files(&self) -> Vec<PathBuf> {
        let login = match &self.login {
            RegistryLogin::None => None,
            RegistryLogin::Basic { password_file: file, .. } | RegistryLogin::Token(file) => Some(file.clone()),
        };
        login.into_iter().chain(self.access.secret_files()).collect()
    }
}

/// A field of a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaField {
    /// Its name.
    pub name: String,
    /// Its name in JSON, where the format has two.
    pub json_name: Option<String>,
    /// A row without it is refused.
    pub is_required: bool,
}

impl SchemaField {
    /// Whether a column of that name is for it.
    #[must_use]
    pub fn is_named(&self, column: &str) -> bool {
        self.name == column || self.json_name.as_deref() == Some(column)
    }
}

/// What a registry says of a relay's schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaFacts {
    /// The subject.
    pub subject: String,
    /// Its id; none while it is not registered, which the relay does at its start.
    pub id: Option<u32>,
    /// Its version, where the registry says it.
    pub version: Option<u32>,
    /// The record's or message's full name.
    pub name: Option<String>,
    /// Its fields, where the format has such.
    pub fields: Option<Vec<SchemaField>>,
}
