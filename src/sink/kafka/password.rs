//! The password of the brokers' log-in, from a file that may be replaced while the relay runs.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use secrecy::{ExposeSecret as _, SecretString};

use crate::secret::Secret;

/// See the module.
#[derive(Debug)]
pub(super) struct Password {
    file: Option<PathBuf>,
    now: Mutex<Read>,
}

#[derive(Clone, Debug, Default)]
struct Read {
    secret: Option<SecretString>,
    /// How often it has changed.
    version: u64,
}

impl Password {
    pub(super) fn new(file: Option<PathBuf>) -> Self {
        Self { file, now: Mutex::default() }
    }

    /// The password now, where a file has it.
    pub(super) fn secret(&self) -> Option<SecretString> {
        self.read().secret
    }

    /// Another one when the password is another one.
    pub(super) fn version(&self) -> u64 {
        self.read().version
    }

    /// Reads the file; that of before stays where it cannot be read or is empty, as it may be while it is replaced.
    fn read(&self) -> Read {
        let Some(file) = &self.file else { return Read::default() };
        let found = Secret::File(file.clone()).read();
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        match found {
            Ok(found) if !found.expose_secret().trim().is_empty() => {
                let is_another = |old: &SecretString| old.expose_secret() != found.expose_secret();
                if now.secret.as_ref().is_some_and(is_another) {
                    now.version += 1;
                }
                now.secret = Some(found);
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(file = %file.display(), %error, "the password of before is used"),
        }
        now.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_password_is_used_while_its_file_is_empty_or_away() {
        let folder = tempfile::tempdir().expect("made");
        let file = folder.path().join("password");
        let write = |text: &str| std::fs::write(&file, text).expect("written");
        let password = Password::new(Some(file.clone()));
        let now = || (password.secret().map(|secret| secret.expose_secret().to_owned()), password.version());
        assert_eq!(now(), (None, 0));
        write("first\n");
        assert_eq!(now(), (Some("first".to_owned()), 0));
        write("");
        assert_eq!(now(), (Some("first".to_owned()), 0));
        write("second");
        assert_eq!(now(), (Some("second".to_owned()), 1));
        std::fs::remove_file(&file).expect("removed");
        assert_eq!(now(), (Some("second".to_owned()), 1));
    }
}
