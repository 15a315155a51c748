//! What a halt was written under: a relay's configuration as a whole, and the files whose content counts with it.

use std::path::PathBuf;

use sha2::{Digest as _, Sha256};

use super::schema_registry;
use super::show::{self, Secrets, TomlLines};
use crate::notation::hex;
use crate::relay::Config;
use crate::secret::Secret;
use crate::sink::Config as Sink;
use crate::sink::kafka::{self, ClusterConfig, Format, SchemaFormat};

/// Files of the relay's own secrets and templates; Kafka's keys are read by its client when one is made.
pub(super) fn secret_files(sink: &Sink, cluster: Option<&ClusterConfig>) -> Vec<PathBuf> {
    let mut files = match sink {
        Sink::Sms(sms) => match &sms.auth_token {
            Secret::File(path) => vec![path.clone()],
            Secret::Value(_) => Vec::new(),
        },
        Sink::Webhook(webhook) => webhook.secret_files.clone(),
        Sink::Http(http) => http.access.secret_files(),
        Sink::Email(email) => email.files(),
        Sink::Custom(custom) => custom.description.secret_files.clone(),
        Sink::Kafka(_) => schema(sink).map(SchemaFormat::files).unwrap_or_default(),
        Sink::Sql(_) | Sink::Stdout(_) | Sink::Command(_) => Vec::new(),
    };
    files.extend(cluster.iter().flat_map(|cluster| cluster.secret_files()));
    files
}

/// The format of a sink whose schemas are in a registry.
pub(super) fn schema(sink: &Sink) -> Option<&SchemaFormat> {
    match sink {
        Sink::Kafka(kafka::Config { format: Format::Schema(schema), .. }) => Some(schema),
        Sink::Kafka(_)
        | Sink::Http(_)
        | Sink::Sms(_)
        | Sink::Webhook(_)
        | Sink::Sql(_)
        | Sink::Email(_)
        | Sink::Stdout(_)
        | Sink::Command(_)
        | Sink::Custom(_) => None,
    }
}

/// A digest of the resolved configuration, secrets included; nothing can be read from it.
pub(super) fn fingerprint(config: &Config, cluster: Option<&ClusterConfig>) -> String {
    let mut text = show::relay(config, Secrets::Exposed);
    if let Some(cluster) = cluster {
        text.push_str(&show::kafka(cluster, Secrets::Exposed));
    }
    if let Some(schema) = schema(&config.sink) {
        let mut lines = TomlLines::default();
        schema_registry::write(&mut lines, &schema.registry);
        text.push_str(&lines.0);
    }
    hex(&Sha256::digest(text.as_bytes()))
}
