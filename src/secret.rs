//! A secret from the configuration: a value, or a file that is read again at each use.

use std::path::PathBuf;

use secrecy::{ExposeSecret, SecretString};

/// Prints nothing of its value.
#[derive(Clone, Debug)]
pub enum Secret {
    /// Given in the configuration or its environment.
    Value(SecretString),
    /// A file; a trailing line break does not count. Read at each use, so that rotation needs no restart.
    File(PathBuf),
}

impl Secret {
    /// The secret now.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(&self) -> std::io::Result<SecretString> {
        match self {
            Self::Value(value) => Ok(value.clone()),
            Self::File(path) => {
                let text = crate::file::text(path)?;
                Ok(SecretString::from(text.trim_end_matches(['\r', '\n']).to_owned()))
            }
        }
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Value(a), Self::Value(b)) => a.expose_secret() == b.expose_secret(),
            (Self::File(a), Self::File(b)) => a == b,
            (Self::Value(_), Self::File(_)) | (Self::File(_), Self::Value(_)) => false,
        }
    }
}
