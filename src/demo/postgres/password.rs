//! The password that a throw-away server asks for: random, so that no other local user has it.

use std::fs::File;
use std::io::Read as _;
use std::sync::OnceLock;

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

/// The statement that creates a role which may log in with [`password`].
#[must_use]
pub fn login(role: &str) -> String {
    format!("CREATE ROLE {role} LOGIN PASSWORD '{}'", password())
}
