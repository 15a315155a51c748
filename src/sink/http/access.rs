//! How the relay proves to a receiver who it is, beside what stands in headers: a certificate of its own, a token of an issuer. And
//! by which authorities it knows the receiver.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::answer::{self, Answer};
use super::oauth2::{self, Token, Tokens};
use super::preset::Seal;
use super::{HttpSink, client};
use crate::sink::{Class, Failure};
pub use crate::tls::IdentityFiles;
use crate::tls::OwnCertificate;

/// What `[relay.sink.http]` says of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// The authorities that verify the receiver's certificate, instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// The relay's own certificate.
    pub identity: Option<IdentityFiles>,
    /// Who gives tokens.
    pub oauth2: Option<oauth2::Config>,
}

/// What a sink keeps of it.
#[derive(Debug)]
pub(super) struct Access {
    config: Config,
    /// What the connections' client was made with; none before its first use.
    files: Mutex<Option<Files>>,
    pub(super) tokens: Option<Tokens>,
}

impl Access {
    pub(super) fn new(config: Config, timeout: Duration) -> Self {
        let tokens = config.oauth2.clone().map(|oauth2| Tokens::new(oauth2, timeout, "[relay.sink.http.oauth2]"));
        Self { tokens, config, files: Mutex::default() }
    }
}

/// What the files hold, to know whether they have changed.
#[derive(PartialEq)]
pub(super) struct Files {
    authorities: Option<Vec<u8>>,
    own: Option<OwnCertificate>,
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files").finish_non_exhaustive()
    }
}

impl Config {
    /// Files that are read again at each use.
    #[must_use]
    pub fn secret_files(&self) -> Vec<PathBuf> {
        let identity = self.identity.iter().flat_map(|files| [&files.certificate, &files.key]);
        let issuer = self.oauth2.iter().flat_map(oauth2::Config::files);
        self.ca_file.iter().chain(identity).cloned().chain(issuer).collect()
    }

    /// Authorities of a private issuer.
    pub(super) fn trusting(ca_file: Option<PathBuf>) -> Self {
        Self { ca_file, ..Self::default() }
    }

    /// Reads the files of the certificates.
    ///
    /// # Errors
    /// What is wrong with which file.
    pub(super) fn read(&self) -> Result<Files, String> {
        let bytes = |path: &PathBuf| crate::file::bytes(path).map_err(|error| format!("{}: {error}", path.display()));
        Ok(Files { authorities: self.ca_file.as_ref().map(bytes).transpose()?, own: self.own()? })
    }

    pub(super) fn own(&self) -> Result<Option<OwnCertificate>, String> {
        self.identity.as_ref().map(IdentityFiles::read).transpose()
    }
}

impl HttpSink {
    /// Asks for a token, where the receiver wants one: how long it lasts, if its issuer says so.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn ask_for_token(&self) -> Result<Option<Duration>, Failure> {
        Ok(self.token().await?.and_then(|token| token.lasts()))
    }

    pub(super) async fn token(&self) -> Result<Option<Token>, Failure> {
        match &self.access.tokens {
            Some(tokens) => tokens.token().await.map(Some),
            None => Ok(None),
        }
    }

    /// Reads the secrets and certificates again, so that rotated ones need no restart.
    pub(super) fn seal(&self) -> Result<Seal, Failure> {
        let Access { config, files: held, .. } = &*self.access;
        if config.ca_file.is_some() || config.identity.is_some() {
            let files = config.read().map_err(unusable)?;
            let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
            if held.as_ref() != Some(&files) {
                let client = client::client(self.timeout(), self.preset.gate.as_ref(), config);
                self.connections.replace(client.map_err(unusable)?);
                *held = Some(files);
            }
        }
        self.preset.seal()
    }

    /// The failure of an answer; of a token that is refused, another one is fetched.
    pub(super) fn failure(&self, answer: Answer, token: Option<&Token>) -> Option<Failure> {
        let failure = answer::classify(answer, self.requests.target())?;
        Some(match (&self.access.tokens, token) {
            (Some(tokens), Some(token)) if failure.code == "http_401" => tokens.refused(token, failure),
            _ => failure,
        })
    }
}

/// The certificates' files cannot be used now.
pub(super) fn unusable(why: String) -> Failure {
    let message = format!("The files of ca_file, cert_file and key_file cannot be used: {why}");
    let hint = "Correct the file; it is read again before each attempt";
    Failure::of(Class::Retry, "certificate_unusable", message, hint)
}
