//! What `[relay.sink.http]` says of certificates and tokens.

use crate::config::problem::Wrong;
use crate::config::section::Section;
use crate::config::value;
use crate::sink::http::access::{Config, IdentityFiles};
use crate::sink::http::oauth2;

pub(super) fn read(section: &Section<'_>) -> Config {
    let ca_file = section.read("ca_file", value::path);
    Config { ca_file, identity: identity(section), oauth2: oauth2(section) }
}

/// The relay's own certificate and its key.
pub(in crate::config) fn identity(section: &Section<'_>) -> Option<IdentityFiles> {
    let pair = (section.read("cert_file", value::path), section.read("key_file", value::path));
    if let (Some(certificate), Some(key)) = pair {
        return Some(IdentityFiles { certificate, key });
    }
    let both = "name both: cert_file and key_file";
    match (section.has("cert_file"), section.has("key_file")) {
        (true, false) => section.problem("cert_file", Wrong::new("a certificate without its key", both)),
        (false, true) => section.problem("key_file", Wrong::new("a key without its certificate", both)),
        (true, true) | (false, false) => {}
    }
    None
}

fn oauth2(section: &Section<'_>) -> Option<oauth2::Config> {
    let oauth2 = crate::config::oauth2::read(section)?;
    let headers = section.read("headers", value::texts).unwrap_or_default();
    if headers.keys().any(|name| name.eq_ignore_ascii_case("authorization")) {
        let what = "the header Authorization is given twice: by headers and by oauth2";
        section.problem("oauth2", Wrong::new(what, "remove one of the two"));
    }
    Some(oauth2)
}
