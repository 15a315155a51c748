//! The passwords that a throw-away server asks for: random, so that no other local user has them, and one for each role, so that a role which
//! may do little is not the way to the superuser.

use std::fs::File;
use std::io::Read as _;
use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

/// The password of a role, the same at all servers of this process: random, and of no use for another role.
///
/// # Panics
/// When the system has no random bytes.
#[must_use]
pub fn password(role: &str) -> String {
    static SECRET: OnceLock<[u8; 32]> = OnceLock::new();
    let secret = SECRET.get_or_init(|| {
        let mut bytes = [0; 32];
        let read = File::open("/dev/urandom").and_then(|mut random| random.read_exact(&mut bytes));
        read.expect("/dev/urandom gives random bytes");
        bytes
    });
    crate::hex(&mac(secret, role.as_bytes())[..16])
}

fn mac(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length");
    mac.chain_update(text).finalize().into_bytes().to_vec()
}

/// A URL without the password of its role, for a program's arguments, which every user of the machine sees.
#[must_use]
pub fn without_password(url: &str) -> String {
    match url.split_once('@') {
        Some((begin, rest)) => {
            format!("{}@{rest}", begin.strip_suffix(&format!(":{}", password(role_of(url)))).unwrap_or(begin))
        }
        None => url.to_owned(),
    }
}

/// The role of a URL; empty where it has none.
#[must_use]
pub fn role_of(url: &str) -> &str {
    let named = url.split_once("://").and_then(|(_, rest)| rest.split_once('@'));
    named.map_or("", |(role, _)| role.split_once(':').map_or(role, |(role, _)| role))
}

/// A role's [`password`] as PostgreSQL keeps it (RFC 5802), of a single iteration: it is random and long, so that iterations protect
/// nothing, and a session that signs in holds the horizon of others for as long as that takes.
#[must_use]
pub(super) fn verifier(role: &str) -> String {
    const SALT: &[u8] = b"outbox-relay demo";
    let salted = mac(password(role).as_bytes(), &[SALT, &1_u32.to_be_bytes()].concat());
    let stored = STANDARD.encode(Sha256::digest(mac(&salted, b"Client Key")));
    let server = STANDARD.encode(mac(&salted, b"Server Key"));
    format!("SCRAM-SHA-256$1:{}${stored}:{server}", STANDARD.encode(SALT))
}

/// The statement that creates a role which may log in with its [`password`].
#[must_use]
pub fn login(role: &str) -> String {
    format!("CREATE ROLE {role} LOGIN PASSWORD '{}'", verifier(role))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_has_a_password_of_its_own_that_stays() {
        let (one, other) = (password("postgres"), password("relay"));
        assert!(one != other && one.len() == 32 && other.len() == 32);
        assert_eq!((password("postgres"), password("relay")), (one, other));
        assert_ne!(verifier("postgres"), verifier("relay"));
    }

    #[test]
    fn url_loses_its_roles_password_and_nothing_else() {
        let url = format!("postgresql://relay:{}@127.0.0.1:5/db?sslmode=disable", password("relay"));
        assert_eq!(without_password(&url), "postgresql://relay@127.0.0.1:5/db?sslmode=disable");
        assert_eq!(role_of(&url), "relay");
        let without = "postgresql://relay@127.0.0.1:5/db";
        assert_eq!((without_password(without).as_str(), role_of(without)), (without, "relay"));
    }
}
