//! Signatures by Standard Webhooks 1.0: HMAC-SHA256 over `id.timestamp.body`, one for each active secret.

use std::fmt;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use secrecy::ExposeSecret as _;
use secrecy::zeroize::Zeroizing;
use sha2::Sha256;

use crate::secret::Secret;

/// How many bytes a secret has by the specification.
const LENGTH: std::ops::RangeInclusive<usize> = 24..=64;

/// The active secrets; prints nothing of them.
pub(super) struct Keys(Vec<Zeroizing<Vec<u8>>>);

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys({})", self.0.len())
    }
}

impl Keys {
    /// The secrets as the files hold them now.
    ///
    /// # Errors
    /// What is wrong with which file; nothing of its content.
    pub(super) fn read(files: &[PathBuf]) -> Result<Self, String> {
        let key = |file: &PathBuf| {
            let name = file.display();
            let text = Secret::File(file.clone()).read().map_err(|error| format!("{name} cannot be read: {error}"))?;
            key(text.expose_secret()).map_err(|wrong| format!("{name} {wrong}"))
        };
        files.iter().map(key).collect::<Result<_, _>>().map(Self)
    }

    /// The value of `webhook-signature`.
    pub(super) fn sign(&self, id: &str, timestamp: &str, body: &[u8]) -> String {
        let one = |key: &Zeroizing<Vec<u8>>| {
            // A key of any length will do for HMAC: there is no error to be had.
            let mut mac = Hmac::<Sha256>::new_from_slice(key).ok()?;
            for piece in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
                mac.update(piece);
            }
            Some(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
        };
        self.0.iter().filter_map(one).collect::<Vec<_>>().join(" ")
    }
}

fn key(text: &str) -> Result<Zeroizing<Vec<u8>>, &'static str> {
    let encoded = text.strip_prefix("whsec_").ok_or("does not begin with whsec_")?;
    let key = STANDARD.decode(encoded).map(Zeroizing::new).map_err(|_| "holds no base64 behind whsec_")?;
    if LENGTH.contains(&key.len()) { Ok(key) } else { Err("must hold 24 to 64 bytes in base64 behind whsec_") }
}

/// The value of `webhook-id`: the message's key, the same for each attempt. No full stop stands in it, because they
/// divide what is signed: a row's id with one could pass for another id and time.
pub(super) fn id(key: &str) -> String {
    key.replace('.', "%2E")
}

#[cfg(test)]
mod tests;
