//! A digest of what decides what a relay delivers, and where: replicas compare theirs.

use sha2::{Digest, Sha256};

use super::Config;
use crate::sink;

/// So many bytes of the digest are shown.
const BYTES: usize = 8;

/// The digest of this relay's configuration and of the contents of its templates' files now; 16 hexadecimal digits.
#[must_use]
pub fn of(config: &Config) -> String {
    let mut digest = Sha256::new();
    digest.update(config.delivers.as_bytes());
    let files = match &config.sink {
        sink::Config::Email(email) => email.template_files(),
        sink::Config::Kafka(_)
        | sink::Config::Http(_)
        | sink::Config::Sms(_)
        | sink::Config::Webhook(_)
        | sink::Config::Sql(_)
        | sink::Config::Stdout(_)
        | sink::Config::Command(_) => Vec::new(),
    };
    for path in files {
        // A file that cannot be read is another state than an empty one: the relay is refused until it can.
        let contents = std::fs::read(&path);
        digest.update([u8::from(contents.is_ok())]);
        digest.update(Sha256::digest(contents.unwrap_or_default()));
    }
    digest.finalize().iter().take(BYTES).map(|byte| format!("{byte:02x}")).collect()
}
