//! What `[relay.sink.http]` says of certificates and tokens.

use reqwest::Url;

use crate::config::problem::Wrong;
use crate::config::section::Section;
use crate::config::value;
use crate::sink::http::access::{Config, IdentityFiles};
use crate::sink::http::oauth2::{self, ClientAuth};

pub(in crate::config) const CLIENT_AUTHS: &[(&str, ClientAuth)] =
    &[("basic", ClientAuth::Basic), ("post", ClientAuth::Post)];

pub(super) fn read(section: &Section<'_>) -> Config {
    let ca_file = section.read("ca_file", value::path);
    let pair = (section.read("cert_file", value::path), section.read("key_file", value::path));
    let identity = match pair {
        (Some(certificate), Some(key)) => Some(IdentityFiles { certificate, key }),
        _ => {
            let both = "name both: cert_file and key_file";
            match (section.has("cert_file"), section.has("key_file")) {
                (true, false) => section.problem("cert_file", Wrong::new("a certificate without its key", both)),
                (false, true) => section.problem("key_file", Wrong::new("a key without its certificate", both)),
                (true, true) | (false, false) => {}
            }
            None
        }
    };
    Config { ca_file, identity, oauth2: oauth2(section) }
}

fn oauth2(section: &Section<'_>) -> Option<oauth2::Config> {
    if !section.has("oauth2") {
        return None;
    }
    let table = section.section("oauth2");
    let example = "write token_url = \"https://id.example.com/oauth/token\"";
    let token_url = table.require("token_url", value::parsed(token_url), example);
    let client_id = table.require("client_id", value::text, "write the name that the issuer knows this relay by");
    let fix = "write the path of the file that holds the client's secret";
    let client_secret_file = table.require("client_secret_file", value::path, fix);
    let scope = table.read("scope", value::text);
    let audience = table.read("audience", value::text);
    let ca_file = table.read("ca_file", value::path);
    let client_auth = table.read("client_auth", value::word(CLIENT_AUTHS, &[])).unwrap_or_default();
    let headers = section.read("headers", value::texts).unwrap_or_default();
    if headers.keys().any(|name| name.eq_ignore_ascii_case("authorization")) {
        let what = "the header Authorization is given twice: by headers and by oauth2";
        section.problem("oauth2", Wrong::new(what, "remove one of the two"));
    }
    Some(oauth2::Config {
        token_url: token_url?,
        client_id: client_id?,
        client_secret_file: client_secret_file?,
        scope,
        audience,
        ca_file,
        client_auth,
    })
}

/// The client's secret goes there, so it is encrypted on its way (RFC 6749, section 3.2).
fn token_url(text: &str) -> Result<String, Wrong> {
    let fix = "write the whole address, for example \"https://id.example.com/oauth/token\"";
    let url = Url::parse(text).map_err(|error| Wrong::new(format!("not a URL: {error}"), fix))?;
    if url.scheme() != "https" && url.scheme() != "http" {
        return Err(Wrong::new("not an https URL", fix));
    }
    if !url.username().is_empty() || url.password().is_some() {
        let fix = "take them out: client_id and client_secret_file are for that";
        return Err(Wrong::new("credentials in a URL are printed wherever the URL is", fix));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(Wrong::new("has a query or a fragment, which can hold a secret", fix));
    }
    let is_here = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    if url.scheme() == "http" && !is_here {
        return Err(Wrong::new("the client's secret would go over the network in clear", "write https://"));
    }
    Ok(text.to_owned())
}
