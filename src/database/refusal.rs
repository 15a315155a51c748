//! What the driver's errors say about a connection that came to nothing: it has no kinds for them.

use super::Error;
use super::error::describe;

/// How the driver says that the server asks for a password and that it has none; it has no kind for it.
const NO_PASSWORD: &str = "password missing";

/// Whether that is what the driver's error is.
pub(super) fn misses_password(error: &tokio_postgres::Error) -> bool {
    error.as_db_error().is_none() && describe(error).ends_with(NO_PASSWORD)
}

/// What the driver says, without a source of a type of its own, when TLS is asked for and the server has none.
const NO_TLS: &str = "server does not support TLS";

/// The refusal to trust the server, when that is what the driver's error is: a broken connection is not.
pub(super) fn distrust(error: &tokio_postgres::Error, target: &str) -> Option<Error> {
    let causes = || std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    if causes().any(|cause| cause.is::<std::io::Error>()) {
        return None;
    }
    let target = target.to_owned();
    if causes().any(|cause| cause.to_string() == NO_TLS) {
        let fix = "Switch ssl on at the server; only where the network cannot be listened to, write sslmode=disable \
                    into [postgres] url";
        return Some(Error::Tls { target, reason: NO_TLS.to_owned(), fix });
    }
    let refused = causes().find(|cause| cause.is::<native_tls::Error>())?;
    let fix = "The server's certificate must be valid now, name the host of [postgres] url, and be signed by an \
                authority of [postgres] ca_file (without it: one of the system's)";
    Some(Error::Tls { target, reason: refused.to_string(), fix })
}

/// The server's TLS alert about the client's certificate, when that ended the connection. It comes as an error of TLS, or of reading
/// after the handshake, in OpenSSL's words.
pub(super) fn alert(error: &tokio_postgres::Error) -> Option<String> {
    let text = describe(error);
    let at = text.find(" alert ")?;
    let alert = text[at + 1..].split(':').next().unwrap_or_default();
    ["certificate", "unknown ca", "access denied", "decrypt error"]
        .iter()
        .any(|word| alert.contains(word))
        .then(|| alert.to_owned())
}
