//! `[schema_registry]`.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;

use super::problem::Wrong;
use super::section::Section;
use super::show::{self, TomlLines};
use super::{oauth2, sink, value};
use crate::sink::http::access;
use crate::sink::kafka::{RegistryConfig, RegistryLogin, SchemaFormat};

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(3);
const DEFAULT_REFRESH: Duration = Duration::from_secs(300);
const FIX: &str = "write where the registry's API begins, for example \"http://127.0.0.1:8081\"";

/// None when the section is not there, or is wrong and reported.
pub(super) fn read(section: &Section<'_>) -> Option<Arc<RegistryConfig>> {
    if !section.is_present() {
        return None;
    }
    if !SchemaFormat::is_available() {
        let fix = "remove [schema_registry], or use a program that was built with the cargo feature schema-registry";
        section.problem("url", Wrong::new("this program was built without it", fix));
        return None;
    }
    let url = section.require("url", value::parsed(url), FIX);
    let login = login(section);
    let ca_file = section.read("ca_file", value::path);
    let access = access::Config { ca_file, identity: sink::identity(section), oauth2: oauth2::read(section) };
    let (second, day) = (Duration::from_secs(1), Duration::from_secs(86_400));
    let timeout = section.read("timeout", value::duration(Duration::from_millis(100)..=Duration::from_secs(60)));
    let refresh = section.read("refresh", value::duration(second..=day));
    Some(Arc::new(RegistryConfig {
        url: url?,
        login: login?,
        access,
        timeout: timeout.unwrap_or(DEFAULT_TIMEOUT),
        refresh: refresh.unwrap_or(DEFAULT_REFRESH),
    }))
}

/// None when it is wrong and reported.
fn login(section: &Section<'_>) -> Option<RegistryLogin> {
    let username = section.read("username", value::parsed(username));
    let password_file = section.read("password_file", value::path);
    let token_file = section.read("token_file", value::path);
    let ways = ["username", "token_file", "oauth2"].into_iter().filter(|key| section.has(key)).collect::<Vec<_>>();
    if let [first, second, ..] = ways[..] {
        let what = format!("the relay logs in in one way, and {first} is another");
        section.problem(second, Wrong::new(what, "remove one of the two"));
        return None;
    }
    match (section.has("username"), section.has("password_file")) {
        (true, false) => section.missing("password_file", "missing beside username", "write the path of its file"),
        (false, true) => section.missing("username", "missing beside password_file", "write the user's name"),
        (true, true) => return Some(RegistryLogin::Basic { username: username?, password_file: password_file? }),
        (false, false) if section.has("token_file") => return token_file.map(RegistryLogin::Token),
        (false, false) => return Some(RegistryLogin::None),
    }
    None
}

/// Basic separates it from the password by a colon.
fn username(text: &str) -> Result<String, Wrong> {
    if text.chars().any(|c| c.is_control() || c == ':') {
        return Err(Wrong::new("has a colon or a control character", "write the user's name alone"));
    }
    Ok(text.to_owned())
}

fn url(text: &str) -> Result<String, Wrong> {
    let url = Url::parse(text).map_err(|error| Wrong::new(format!("not a URL: {error}"), FIX))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Wrong::new("not an http or https URL", FIX));
    }
    if !url.username().is_empty() || url.password().is_some() {
        let fix = "take them out: username and password_file are for that";
        return Err(Wrong::new("credentials in a URL are printed wherever the URL is", fix));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(Wrong::new("has a query or a fragment, which can hold a secret", FIX));
    }
    Ok(text.trim_end_matches('/').to_owned())
}

/// As it is read.
pub(super) fn write(lines: &mut TomlLines, config: &RegistryConfig) {
    lines.section("[schema_registry]");
    lines.text("url", &config.url);
    match &config.login {
        RegistryLogin::None => {}
        RegistryLogin::Basic { username, password_file } => {
            lines.text("username", username);
            lines.text("password_file", &password_file.display().to_string());
        }
        RegistryLogin::Token(file) => lines.text("token_file", &file.display().to_string()),
    }
    if let Some(file) = &config.access.ca_file {
        lines.text("ca_file", &file.display().to_string());
    }
    if let Some(files) = &config.access.identity {
        lines.text("cert_file", &files.certificate.display().to_string());
        lines.text("key_file", &files.key.display().to_string());
    }
    lines.duration("timeout", config.timeout);
    lines.duration("refresh", config.refresh);
    if let Some(config) = &config.access.oauth2 {
        lines.section("[schema_registry.oauth2]");
        show::oauth2::lines(lines, config);
    }
}
