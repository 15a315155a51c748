//! The password of the brokers' log-in, from a file that may be replaced while the relay runs.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use secrecy::{ExposeSecret as _, SecretString};

use crate::secret::Secret;

/// File and brokers do not change at the same instant: for so long a new password that is refused may be right soon.
const NEW: Duration = Duration::from_secs(300);

/// See the module.
#[derive(Debug)]
pub(super) struct Password {
    file: Option<PathBuf>,
    now: Mutex<Read>,
}

#[derive(Debug)]
struct Read {
    secret: Option<SecretString>,
    changed: Option<Instant>,
}

impl Password {
    /// `secret` is what the file held when the configuration was read.
    pub(super) fn new(file: Option<PathBuf>, secret: Option<&str>) -> Self {
        let secret = secret.filter(|_| file.is_some()).map(SecretString::from);
        Self { file, now: Mutex::new(Read { secret, changed: None }) }
    }

    /// The password now, where a file has it; the previous one while the file cannot be read or is empty, as it may be while it is
    /// replaced.
    pub(super) fn secret(&self) -> Option<SecretString> {
        let file = self.file.as_ref()?;
        let found = Secret::File(file.clone()).read();
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        match found {
            Ok(found) if !found.expose_secret().trim().is_empty() => {
                let is_same = |old: &SecretString| old.expose_secret() == found.expose_secret();
                if !now.secret.as_ref().is_some_and(is_same) {
                    *now = Read { secret: Some(found), changed: Some(Instant::now()) };
                }
            }
            Ok(_) => unusable(file, "it is empty"),
            Err(error) => unusable(file, &error.to_string()),
        }
        now.secret.clone()
    }

    /// Whether a client has found another one a few minutes ago.
    pub(super) fn is_new(&self) -> bool {
        let now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        now.changed.is_some_and(|changed| changed.elapsed() < NEW)
    }
}

fn unusable(file: &Path, error: &str) {
    tracing::warn!(
        setting = "[kafka] sasl_password_file",
        file = %file.display(),
        error,
        hint = "Make it readable for the relay's user, with the password as its only content; the next client reads it again",
        "the previous Kafka password is used"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_password_is_used_while_its_file_is_empty_or_away() {
        let folder = tempfile::tempdir().expect("made");
        let file = folder.path().join("password");
        let write = |text: &str| std::fs::write(&file, text).expect("written");
        let password = Password::new(Some(file.clone()), Some("first"));
        let now = || (password.secret().map(|secret| secret.expose_secret().to_owned()), password.is_new());
        assert_eq!(now(), (Some("first".to_owned()), false));
        write("first\n");
        assert_eq!(now(), (Some("first".to_owned()), false));
        write("");
        assert_eq!(now(), (Some("first".to_owned()), false));
        write("second");
        assert_eq!(now(), (Some("second".to_owned()), true));
        std::fs::remove_file(&file).expect("removed");
        assert_eq!(now(), (Some("second".to_owned()), true));
    }
}
