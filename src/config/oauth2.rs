//! `oauth2` of `[kafka]` and of `[relay.sink.http]`.

use std::collections::BTreeMap;

use reqwest::Url;

use super::problem::Wrong;
use super::section::Section;
use super::value;
use crate::sink::http::oauth2::{ClientAuth, Config};

pub(super) const CLIENT_AUTHS: &[(&str, ClientAuth)] = &[("basic", ClientAuth::Basic), ("post", ClientAuth::Post)];

/// `None` when it is absent, or wrong and reported.
pub(super) fn read(section: &Section<'_>) -> Option<Config> {
    section.has("oauth2").then(|| table(&section.section("oauth2")))?
}

/// The same of `[kafka]`, with the extensions of its log-ins.
pub(super) fn read_kafka(section: &Section<'_>) -> (Option<Config>, BTreeMap<String, String>) {
    if !section.has("oauth2") {
        return (None, BTreeMap::new());
    }
    let oauth2 = section.section("oauth2");
    let extensions = oauth2.read("extensions", value::texts).unwrap_or_default();
    for (name, value) in &extensions {
        if let Err(wrong) = extension(name, value) {
            oauth2.problem("extensions", wrong);
        }
    }
    (table(&oauth2), extensions)
}

/// As brokers take them: RFC 7628, section 3.1.
fn extension(name: &str, value: &str) -> Result<(), Wrong> {
    let fix = "write it as the brokers' operator says, for example { logicalCluster = \"lkc-a1b2c3\" }";
    if name.is_empty() || !name.bytes().all(|c| c.is_ascii_alphabetic()) {
        let what = format!("{name:?} is no name of an extension, which is of the letters a-z and A-Z");
        return Err(Wrong::new(what, fix));
    }
    if name == "auth" {
        return Err(Wrong::new("auth is the token's own place in a log-in", "remove it"));
    }
    if value.is_empty() || !value.bytes().all(|c| c == b' ' || c.is_ascii_graphic()) {
        let what = format!("the value of {name} is empty, or has other characters than ASCII's visible ones");
        return Err(Wrong::new(what, fix));
    }
    Ok(())
}

fn table(table: &Section<'_>) -> Option<Config> {
    let example = "write token_url = \"https://id.example.com/oauth/token\"";
    let token_url = table.require("token_url", value::parsed(token_url), example);
    let client_id = table.require("client_id", value::text, "write the name that the issuer knows this relay by");
    let fix = "write the path of the file that holds the client's secret";
    let client_secret_file = table.require("client_secret_file", value::path, fix);
    let scope = table.read("scope", value::text);
    let audience = table.read("audience", value::text);
    let ca_file = table.read("ca_file", value::path);
    let client_auth = table.read("client_auth", value::word(CLIENT_AUTHS, &[])).unwrap_or_default();
    Some(Config {
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
