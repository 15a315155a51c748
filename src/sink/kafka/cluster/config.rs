//! `[kafka]`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use crate::sink::http::oauth2;

/// `[kafka]` of the configuration: the cluster, shared by all relays.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ClusterConfig {
    /// `host:port`, several with commas.
    pub bootstrap_servers: String,
    /// Raw librdkafka properties, already checked against those that would break a guarantee.
    pub properties: BTreeMap<String, String>,
    /// The file of the property `sasl.password`, read whenever a client is made.
    pub password_file: Option<PathBuf>,
    /// Who gives tokens, where the brokers want them.
    pub oauth2: Option<oauth2::Config>,
}

impl ClusterConfig {
    /// Files whose content clients log in with.
    #[must_use]
    pub fn secret_files(&self) -> Vec<PathBuf> {
        let keys = ["ssl.key.location", "ssl.certificate.location", "ssl.keystore.location"];
        let mut files: Vec<_> = keys.iter().filter_map(|key| self.properties.get(*key)).map(PathBuf::from).collect();
        files.extend(self.password_file.clone());
        files.extend(self.oauth2.iter().flat_map(oauth2::Config::files));
        files
    }
}

impl fmt::Debug for ClusterConfig {
    /// The properties by name only: their values may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterConfig")
            .field("bootstrap_servers", &self.bootstrap_servers)
            .field("properties", &self.properties.keys())
            .field("password_file", &self.password_file)
            .field("oauth2", &self.oauth2)
            .finish()
    }
}
