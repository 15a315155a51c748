//! Whether a relay's configuration has changed since a halt.

use secrecy::ExposeSecret as _;
use sha2::{Digest as _, Sha256};

use crate::notation::hex;
use crate::relay::Config;
use crate::secret::Secret;

/// A digest of the configuration and of the secrets' present values.
pub(in crate::relay) fn fingerprint(config: &Config) -> String {
    let mut digest = Sha256::new();
    digest.update(config.fingerprint.as_bytes());
    for path in &config.secret_files {
        digest.update(path.as_os_str().as_encoded_bytes());
        // An unreadable secret is another state than a readable one: fixing it ends the halt.
        if let Ok(secret) = Secret::File(path.clone()).read() {
            digest.update(secret.expose_secret().as_bytes());
        }
    }
    hex(&digest.finalize())
}
