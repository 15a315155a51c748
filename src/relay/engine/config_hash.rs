//! A digest of what decides what a relay delivers, and where: replicas compare theirs.

use sha2::{Digest, Sha256};

use crate::notation::hex;
use crate::relay::Config;
use crate::sink::{self, InvalidSetting};

/// So many bytes of the digest are shown.
const BYTES: usize = 8;

/// Instead of the digest when a file cannot be read.
pub const UNREADABLE: &str = "unreadable";

/// The digest of this relay's configuration and of the contents of its templates' files now; 16 hexadecimal digits.
///
/// # Errors
/// When a file cannot be read: its key, and which file.
pub fn of(config: &Config) -> Result<String, InvalidSetting> {
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
        | sink::Config::Command(_)
        | sink::Config::Custom(_) => Vec::new(),
    };
    for (key, path) in files {
        let contents = crate::file::bytes(&path)
            .map_err(|error| InvalidSetting { key, problem: format!("{} cannot be read: {error}", path.display()) })?;
        digest.update(Sha256::digest(contents));
    }
    Ok(hex(&digest.finalize()[..BYTES]))
}
