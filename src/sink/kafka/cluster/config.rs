//! `[kafka]`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::sink::http::oauth2;
use crate::sink::kafka::aws_iam;
use crate::{file, tls};

/// Properties whose files are read when a client is made.
const FILES: [&str; 5] =
    [AUTHORITIES, "ssl.certificate.location", "ssl.key.location", "ssl.keystore.location", "ssl.crl.location"];
/// It may name a directory, or have librdkafka look for the system's.
const AUTHORITIES: &str = "ssl.ca.location";

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
    /// SASL extensions that are sent with its tokens, by name.
    pub extensions: BTreeMap<String, String>,
    /// How tokens are signed, where the brokers are Amazon's.
    pub aws_iam: Option<aws_iam::Config>,
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

    /// The files of properties, each with its property.
    fn files(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let file = |key: &'static str| self.properties.get(key).map(|path| (key, Path::new(path.as_str())));
        let is_file = |path: &Path| !path.is_dir() && path != Path::new("probe");
        FILES.into_iter().filter_map(file).filter(move |(key, path)| *key != AUTHORITIES || is_file(path))
    }

    /// What is wrong with the first of them that cannot be read.
    pub(super) fn unreadable_file(&self) -> Option<String> {
        self.files().find_map(|(key, path)| {
            let why = file::bytes(path).err()?;
            Some(format!("[kafka.properties] {key}: {} cannot be read: {why}", path.display()))
        })
    }

    /// The file of a property that a message names.
    pub(super) fn file_in(&self, message: &str) -> Option<String> {
        let named = self.files().find(|(key, _)| message.contains(key));
        named.map(|(key, path)| format!("[kafka.properties] {key} is {}", path.display()))
    }

    /// See [`super::Cluster::certificate_ends`].
    pub(super) fn certificate_ends(&self) -> Option<(String, i64)> {
        if let Some(pem) = self.properties.get("ssl.certificate.pem") {
            return Some(("ssl.certificate.pem".to_owned(), tls::ends(pem.as_bytes()).ok()?));
        }
        let path = self.properties.get("ssl.certificate.location")?;
        let ends = tls::ends(&file::bytes(Path::new(path)).ok()?).ok()?;
        Some((format!("ssl.certificate.location ({path})"), ends))
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
            .field("extensions", &self.extensions.keys())
            .field("aws_iam", &self.aws_iam)
            .finish()
    }
}
