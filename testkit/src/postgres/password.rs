//! The password that a throw-away server asks for: random, so that no other local user has it.

use std::fs::File;
use std::io::Read as _;
use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

/// The random password of all servers of this process.
///
/// # Panics
/// When the system has no random bytes.
#[must_use]
pub fn password() -> &'static str {
    static PASSWORD: OnceLock<String> = OnceLock::new();
    PASSWORD.get_or_init(|| {
        let mut bytes = [0; 16];
        let read = File::open("/dev/urandom").and_then(|mut random| random.read_exact(&mut bytes));
        read.expect("/dev/urandom gives random bytes");
        bytes.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
    })
}

/// A URL of a server of this process without [`password`], for a program's arguments, which every user of the machine sees.
#[must_use]
pub fn without_password(url: &str) -> String {
    url.replace(&format!(":{}@", password()), "@")
}

/// [`password`] as PostgreSQL keeps it (RFC 5802), of a single iteration: it is random and long, so that iterations protect
/// nothing, and a session that signs in holds the horizon of others for as long as that takes.
#[must_use]
pub(super) fn verifier() -> String {
    const SALT: &[u8] = b"outbox-relay demo";
    let mac = |key: &[u8], text: &[u8]| {
        let mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length");
        mac.chain_update(text).finalize().into_bytes()
    };
    let salted = mac(password().as_bytes(), &[SALT, &1_u32.to_be_bytes()].concat());
    let stored = STANDARD.encode(Sha256::digest(mac(&salted, b"Client Key")));
    let server = STANDARD.encode(mac(&salted, b"Server Key"));
    format!("SCRAM-SHA-256$1:{}${stored}:{server}", STANDARD.encode(SALT))
}

/// The statement that creates a role which may log in with [`password`].
#[must_use]
pub fn login(role: &str) -> String {
    format!("CREATE ROLE {role} LOGIN PASSWORD '{}'", verifier())
}
